/**
 * The memory of idle sessions and streams: heap and resident memory of a server after a garbage collection, with few
 * and with many of them. It also measures the latency of calls meanwhile.
 */
import { type Era, revisionOf } from "../stdio/messages.ts"
import { HttpClient, type Request, textOf } from "./httpClient.ts"
import type { Peer } from "./peers.ts"
import { failure, type Measure, type Row } from "./report.ts"
import { ServerProcess } from "./serverProcess.ts"
import { Streams } from "./streams.ts"
import { openSession } from "./throughput.ts"
import { call, listen, messagesOf, stream, withId } from "./requests.ts"
import * as wrk from "./wrk.ts"

export interface Plan {
  readonly few: number
  readonly many: number
}

/**
 * The number of sessions or streams before the baseline, so that it includes compiled code and other one-time
 * allocations.
 */
export const warmUpCount = 500

/** The pause between calls while streams are open, in milliseconds. */
const pause = 5

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const kilobytes = (from: number, to: number, count: number): number => (to - from) / count / 1_000

type Figures = Record<string, number>

const callIn = async (client: HttpClient, session: string, id: number): Promise<void> =>
  call.check(messagesOf(await client.send(withId(call.request("session", session), id))))

/** Opens sessions, measures with few and with many of them, and returns them. */
const openSessions = async (
  server: ServerProcess,
  client: HttpClient,
  plan: Plan,
  figures: Figures
): Promise<Array<string>> => {
  const sessions: Array<string> = []
  let opening = 0
  const open = async (total: number): Promise<NodeJS.MemoryUsage> => {
    const begin = performance.now()
    const one = async (): Promise<void> => {
      while (sessions.length + pending < total) {
        pending++
        const session = await openSession(client)
        pending--
        if (session === undefined) throw new Error("the server has no sessions")
        sessions.push(session)
      }
    }
    let pending = 0
    await Promise.all(Array.from({ length: 32 }, one))
    opening = performance.now() - begin
    client.close()
    return server.memory()
  }
  await open(warmUpCount)
  for (const session of sessions) await callIn(client, session, 1_000_000)
  const base = await open(warmUpCount)
  const few = await open(warmUpCount + plan.few)
  const many = await open(warmUpCount + plan.many)
  // All sessions still exist.
  for (const index of [0, warmUpCount, warmUpCount + plan.few, sessions.length - 1]) {
    await callIn(client, sessions[index]!, 1_000_001)
  }
  figures["rate"] = (plan.many - plan.few) / opening * 1_000
  figures["few"] = kilobytes(base.heapUsed, few.heapUsed, plan.few)
  figures["many"] = kilobytes(base.heapUsed, many.heapUsed, plan.many)
  figures["rss"] = kilobytes(base.rss, many.rss, plan.many)
  return sessions
}

/** Opens streams, measures with few and with many of them, and measures the latency of calls during and after. */
const openStreams = async (
  server: ServerProcess,
  { few, many }: Plan,
  requests: ReadonlyArray<Request>,
  mark: string,
  callRequest: Request,
  figures: Figures
): Promise<void> => {
  const streams = new Streams(server.port, mark)
  const load = {
    port: server.port,
    requests: [textOf(server.port, callRequest)],
    connections: 1,
    pause,
    marks: call.marks
  }
  try {
    await streams.open(requests.slice(0, warmUpCount))
    await wrk.run({ ...load, seconds: 1 })
    const base = await server.memory()
    const first = await streams.open(requests.slice(warmUpCount, warmUpCount + few))
    const atFew = await server.memory()
    const meanwhile = wrk.start({ ...load, seconds: 60 })
    const opening = (async () => {
      await sleep(200)
      const seconds = await streams.open(requests.slice(warmUpCount + few, warmUpCount + many))
      meanwhile.stop()
      return seconds
    })()
    const [second, during] = await Promise.all([opening.finally(meanwhile.stop), meanwhile.load])
    const atMany = await server.memory()
    const after = await wrk.run({ ...load, seconds: 2 })
    if (streams.size < warmUpCount + many) throw new Error(`${warmUpCount + many - streams.size} streams were closed`)
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

const withRatios = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
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
  // A session of bare Node needs almost no memory, so a ratio would be meaningless.
  columns: [...heapColumns(plan), residentColumn, { key: "rate", title: "opened/s", unit: "count" }],
  rows
})

const streamMeasure = (era: Era, plan: Plan, rows: ReadonlyArray<Row>): Measure => ({
  name: "streams",
  era,
  title: era === "session"
    ? `An idle GET stream, one per session, ${revisionOf.session}`
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
  rows: withRatios(rows)
})

const rowOf = (peer: Peer, figures: Figures): Row => ({ peer: peer.name, label: peer.label, figures })

/** Measures sessions, then a GET stream for each of them. */
export const measureSessions = async (peers: ReadonlyArray<Peer>, plan: Plan): Promise<ReadonlyArray<Measure>> => {
  const sessionRows: Array<Row> = []
  const streamRows: Array<Row> = []
  for (const peer of peers.filter((peer) => peer.eras.includes("session"))) {
    const server = await ServerProcess.start(peer, peer.json ?? [])
    const client = new HttpClient(server.port, 32)
    try {
      const ofSessions: Figures = {}
      const sessions = await openSessions(server, client, plan, ofSessions)
      sessionRows.push(rowOf(peer, ofSessions))
      const ofStreams: Figures = {}
      const callRequest = call.request("session", await openSession(client))
      await openStreams(server, plan, sessions.map(stream), "", callRequest, ofStreams)
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

/** Measures `subscriptions/listen` streams (2026-07-28). */
export const measureListenStreams = async (peers: ReadonlyArray<Peer>, plan: Plan): Promise<Measure> => {
  const rows: Array<Row> = []
  for (const peer of peers.filter((peer) => peer.eras.includes("request"))) {
    const server = await ServerProcess.start(peer, [])
    try {
      const figures: Figures = {}
      const requests = Array.from({ length: warmUpCount + plan.many }, (_, index) => withId(listen, 2_000_000 + index))
      const callRequest = call.request("request", undefined)
      await openStreams(server, plan, requests, "notifications/subscriptions/acknowledged", callRequest, figures)
      rows.push(rowOf(peer, figures))
    } catch (error) {
      rows.push(failure(peer, error))
    } finally {
      await server.stop()
    }
  }
  return streamMeasure("request", plan, rows)
}
