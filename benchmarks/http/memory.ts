/**
 * What an idle session and an idle stream cost: the heap and the resident memory of a server of its own, after garbage was
 * collected, with few and with many of them. And how it answers meanwhile.
 */
import { type Era, revisionOf } from "../stdio/wire.ts"
import { Client, type Request, textOf } from "./client.ts"
import type { Peer } from "./peers.ts"
import { failure, type Measure, type Row } from "./report.ts"
import { Server } from "./server.ts"
import { Streams } from "./streams.ts"
import { openSession } from "./throughput.ts"
import { call, listen, messagesOf, numbered, stream } from "./wire.ts"
import * as wrk from "./wrk.ts"

export interface Plan {
  readonly few: number
  readonly many: number
}

/** How many come first and do not count, so that what is made once has been made: compiled code, above all. */
export const before = 500

/** The pause between the calls that are made beside streams, in milliseconds. */
const pause = 5

const wait = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

const kilobytes = (from: number, to: number, count: number): number => (to - from) / count / 1_000

type Figures = Record<string, number>

const callIn = async (client: Client, session: string, id: number): Promise<void> =>
  call.check(messagesOf(await client.ask(numbered(call.request("session", session), id))))

/** Opens sessions; measures at few and at many. Answers the sessions. */
const openSessions = async (server: Server, client: Client, plan: Plan, figures: Figures): Promise<Array<string>> => {
  const sessions: Array<string> = []
  let opening = 0
  const open = async (total: number): Promise<NodeJS.MemoryUsage> => {
    const begin = performance.now()
    const one = async (): Promise<void> => {
      while (sessions.length + pending < total) {
        pending++
        const session = await openSession(client)
        pending--
        if (session === undefined) throw new Error("it has no sessions")
        sessions.push(session)
      }
    }
    let pending = 0
    await Promise.all(Array.from({ length: 32 }, one))
    opening = performance.now() - begin
    client.close()
    return server.memory()
  }
  await open(before)
  for (const session of sessions) await callIn(client, session, 1_000_000)
  const base = await open(before)
  const few = await open(before + plan.few)
  const many = await open(before + plan.many)
  // They are all there still, the first as the last.
  for (const index of [0, before, before + plan.few, sessions.length - 1]) {
    await callIn(client, sessions[index]!, 1_000_001)
  }
  figures["rate"] = (plan.many - plan.few) / opening * 1_000
  figures["few"] = kilobytes(base.heapUsed, few.heapUsed, plan.few)
  figures["many"] = kilobytes(base.heapUsed, many.heapUsed, plan.many)
  figures["rss"] = kilobytes(base.rss, many.rss, plan.many)
  return sessions
}

/** Opens streams; measures at few and at many, and how a call fares while they are opened and after. */
const openStreams = async (
  server: Server,
  { few, many }: Plan,
  requests: ReadonlyArray<Request>,
  mark: string,
  beside: Request,
  figures: Figures
): Promise<void> => {
  const streams = new Streams(server.port, mark)
  const load = { port: server.port, requests: [textOf(server.port, beside)], connections: 1, pause, marks: call.marks }
  try {
    await streams.open(requests.slice(0, before))
    await wrk.run({ ...load, seconds: 1 })
    const base = await server.memory()
    const first = await streams.open(requests.slice(before, before + few))
    const atFew = await server.memory()
    const meanwhile = wrk.start({ ...load, seconds: 60 })
    const opening = (async () => {
      await wait(200)
      const seconds = await streams.open(requests.slice(before + few, before + many))
      meanwhile.stop()
      return seconds
    })()
    const [second, during] = await Promise.all([opening.finally(meanwhile.stop), meanwhile.load])
    const atMany = await server.memory()
    const after = await wrk.run({ ...load, seconds: 2 })
    if (streams.size < before + many) throw new Error(`${before + many - streams.size} streams were closed`)
    figures["few"] = kilobytes(base.heapUsed, atFew.heapUsed, few)
    figures["many"] = kilobytes(base.heapUsed, atMany.heapUsed, many)
    figures["rss"] = kilobytes(base.rss, atMany.rss, many)
    figures["seconds"] = first + second
    figures["during50"] = during.p50
    figures["during99"] = during.p99
    figures["after50"] = after.p50
    figures["after99"] = after.p99
  } finally {
    streams.close()
  }
}

const compared = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  const base = rows.find(({ peer }) => peer === "bare")?.figures["many"]
  return rows.map((row) => {
    const many = row.figures["many"]
    return typeof base === "number" && typeof many === "number"
      ? { ...row, figures: { ...row.figures, ratio: many / base } }
      : row
  })
}

const number = (value: number): string => value.toLocaleString("en-US")

const heapColumns = ({ few, many }: Plan) =>
  [
    { key: "few", title: `heap KB at ${number(few)}`, unit: "decimal" },
    { key: "many", title: `at ${number(many)}`, unit: "decimal" }
  ] as const

const residentColumn = { key: "rss", title: "resident KB", unit: "decimal" } as const

const sessionMeasure = (plan: Plan, rows: ReadonlyArray<Row>): Measure => ({
  name: "sessions",
  era: "session",
  title: `An idle session, ${revisionOf.session}`,
  // Bare Node's session is next to nothing, so that a ratio to it says nothing.
  columns: [...heapColumns(plan), residentColumn, { key: "rate", title: "opened/s", unit: "count" }],
  rows
})

const streamMeasure = (era: Era, plan: Plan, rows: ReadonlyArray<Row>): Measure => ({
  name: "streams",
  era,
  title: era === "session"
    ? `An idle GET stream, each of a session of its own, ${revisionOf.session}`
    : `An idle subscriptions/listen stream, ${revisionOf.request}`,
  columns: [
    ...heapColumns(plan),
    { key: "ratio", title: "/ bare", unit: "ratio" },
    residentColumn,
    { key: "seconds", title: `s to open ${number(plan.many)}`, unit: "decimal" },
    { key: "during50", title: "call p50 ms meanwhile", unit: "decimal" },
    { key: "during99", title: "p99", unit: "decimal" },
    { key: "after50", title: "call p50 ms after", unit: "decimal" },
    { key: "after99", title: "p99", unit: "decimal" }
  ],
  rows: compared(rows)
})

const rowOf = (peer: Peer, figures: Figures): Row => ({ peer: peer.name, label: peer.label, figures })

/** Sessions, then a GET stream for each of them. */
export const inSessions = async (peers: ReadonlyArray<Peer>, plan: Plan): Promise<ReadonlyArray<Measure>> => {
  const sessionRows: Array<Row> = []
  const streamRows: Array<Row> = []
  for (const peer of peers.filter((peer) => peer.eras.includes("session"))) {
    const server = await Server.start(peer, peer.json ?? [])
    const client = new Client(server.port, 32)
    try {
      const ofSessions: Figures = {}
      const sessions = await openSessions(server, client, plan, ofSessions)
      sessionRows.push(rowOf(peer, ofSessions))
      const ofStreams: Figures = {}
      const beside = call.request("session", await openSession(client))
      await openStreams(server, plan, sessions.map(stream), "", beside, ofStreams)
      streamRows.push(rowOf(peer, ofStreams))
    } catch (error) {
      const rows = sessionRows.at(-1)?.peer === peer.name ? streamRows : sessionRows
      rows.push(failure(peer, error))
    } finally {
      client.close()
      await server.stop()
    }
  }
  return [sessionMeasure(plan, sessionRows), streamMeasure("session", plan, streamRows)]
}

/** Streams of the request era. */
export const listening = async (peers: ReadonlyArray<Peer>, plan: Plan): Promise<Measure> => {
  const rows: Array<Row> = []
  for (const peer of peers.filter((peer) => peer.eras.includes("request"))) {
    const server = await Server.start(peer, [])
    try {
      const figures: Figures = {}
      const requests = Array.from({ length: before + plan.many }, (_, index) => numbered(listen, 2_000_000 + index))
      const beside = call.request("request", undefined)
      await openStreams(server, plan, requests, "notifications/subscriptions/acknowledged", beside, figures)
      rows.push(rowOf(peer, figures))
    } catch (error) {
      rows.push(failure(peer, error))
    } finally {
      await server.stop()
    }
  }
  return streamMeasure("request", plan, rows)
}
