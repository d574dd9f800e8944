/**
 * The checks after a walk: what was acknowledged is there at every node, every client is notified, and nothing is left when
 * the sessions have ended.
 */
import { eventually, type Nodes } from "./nodes.ts"
import { levels, type Session } from "./session.ts"
import type { Clients } from "./clients.ts"

/** Milliseconds in which a session expires whose client does not know its id: `initialize` has a time, and then it is idle. */
const unknownMillis = 200_000

/** Runs a function for each element, some of them at the same time. */
const forEach = async <A>(all: ReadonlyArray<A>, run: (one: A) => Promise<void>): Promise<void> => {
  const rest = [...all]
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let one = rest.pop(); one !== undefined; one = rest.pop()) await run(one)
  }))
}

interface Row {
  readonly id: string
  readonly log_level: string | null
  readonly subscriptions: ReadonlyArray<string>
}

export const settle = async (nodes: Nodes, clients: Clients): Promise<void> => {
  const { ended, records, sessions } = clients
  const problem = (what: string | undefined): void => {
    if (what !== undefined) records.problem(what)
  }
  const ports = () => [...nodes.running].map(({ process }) => process.port)
  const { targets } = nodes.balancer
  problem(await eventually(() => targets.every(({ isReady }) => isReady) ? undefined : "not all nodes are ready"))

  // Changes whose notifications are on their way.
  await eventually(() => records.unheard.length === 0 ? undefined : "waits", 15_000)
  for (const unheard of records.unheard) records.problem(unheard)
  records.touches.clear()

  // The levels and subscriptions that were acknowledged. Those that are unknown are sent again.
  await forEach(sessions, async (session) => {
    if (session.level === undefined && !await session.setLevel("critical")) {
      records.problem(`the level of session ${session.name} could not be set`)
    }
    for (const [uri, isSubscribed] of session.subscriptions) {
      if (isSubscribed === undefined && !await session.subscribe(uri, true)) {
        records.problem(`no subscription to ${uri}`)
      }
    }
  })
  const rows = new Map(
    (await nodes.query<Row>("SELECT id, log_level, subscriptions FROM skein_fleet_sessions")).map((
      row
    ) => [row.id, row])
  )
  for (const session of sessions) problem(compare(session, rows.get(session.id)))
  await forEach(sessions, async (session) => {
    const logs = levels[session.level!] ? 1 : 0
    for (const port of ports()) {
      const key = clients.newKey(session)
      await session.call("echo", { key }, key, { port })
      const found = await session.request("tools/call", { name: "log", arguments: {} }, { port })
      if (found.text === undefined) records.problem(`log of session ${session.name}: ${found.why}`)
      else if (found.logs !== logs) records.problem(`session ${session.name} has an old level at a node`)
    }
  })

  // A change of each resource: those that a client has unsubscribed from come first.
  await forEach(sessions, async (session) => {
    const byState = [...session.subscriptions].toSorted(([, one], [, other]) => Number(one) - Number(other))
    for (const [uri, isSubscribed] of byState) {
      records.touches.set(uri, { uri, from: records.now, isAcknowledged: isSubscribed === true })
      const { text, why } = await session.request("tools/call", { name: "touch", arguments: { uri } })
      if (text === undefined) records.problem(`touch of session ${session.name}: ${why}`)
    }
  })
  await eventually(() => records.unheard.length === 0 ? undefined : "waits", 30_000)
  for (const unheard of records.unheard) records.problem(`after the walk: ${unheard}`)
  if (records.unheard.length > 0) records.problem(await describe(nodes))
  for (const session of sessions) {
    for (const [uri, isSubscribed] of session.subscriptions) {
      if (isSubscribed === false && !records.touches.has(uri)) {
        records.problem(`notified of ${uri} without a subscription`)
      }
    }
  }
  records.touches.clear()
  records.compare(await nodes.calls(), nodes.killed)

  await forEach(sessions, (session) => session.end())
  await forEach([...sessions, ...ended], async (session) => {
    for (const port of ports()) {
      const status = await session.statusAt(port)
      if (status !== 404) records.problem(`status ${status} of session ${session.name}, which has ended`)
    }
  })
  await checkRemains(nodes, clients, problem)
}

/** Describes where the clients listen. */
const describe = async (nodes: Nodes): Promise<string> => {
  const rows = await nodes.query("SELECT record::json->'info'->>'name' AS client, listens_at FROM skein_fleet_sessions")
  const places = await Promise.all([...nodes.running].map(async ({ process }) => {
    const { clients } = await process.counts()
    const listening = clients.filter(([, isListening]) => isListening).map(([name]) => name)
    return `node ${process.node} has the streams of ${listening.join(", ")}`
  }))
  return [...rows.map((row) => JSON.stringify(row)), ...places].join("\n")
}

/** Compares a session with its record. */
const compare = (session: Session, row: Row | undefined): string | undefined => {
  if (row === undefined) return `session ${session.name} has no record`
  if (row.log_level !== session.level) {
    return `session ${session.name} has the level ${row.log_level} instead of ${session.level}`
  }
  const wanted = [...session.subscriptions].filter(([, isSubscribed]) => isSubscribed).map(([uri]) => uri).toSorted()
  const found = row.subscriptions.map((text) => JSON.parse(text) as string).toSorted()
  return String(wanted) === String(found) ? undefined : `session ${session.name} has ${found} instead of ${wanted}`
}

/** Checks that nothing is left when all sessions have ended. */
const checkRemains = async (
  nodes: Nodes,
  { records, sessions }: Clients,
  problem: (what: string | undefined) => void
): Promise<void> => {
  const ids = async (table: string, column: string) =>
    (await nodes.query<{ readonly id: string }>(`SELECT DISTINCT ${column} AS id FROM ${table}`)).map(({ id }) => id)
  const known = new Set(sessions.map(({ id }) => id))
  const left = await ids("skein_fleet_sessions", "id")
  const unknown = left.filter((id) => !known.has(id))
  if (unknown.length < left.length) {
    records.problem(`${left.length - unknown.length} records of ended sessions are left`)
  }
  if (unknown.length > records.countOf("initialize without an answer")) {
    records.problem(`${unknown.length} records are left of sessions that no client knows`)
  }
  problem(
    await eventually(
      async () => {
        const { length } = await ids("skein_fleet_sessions", "id")
        return length === 0 ? undefined : `${length} records have not expired`
      },
      unknownMillis
    )
  )
  // Each node removes its events. Those of nodes that have ended expire.
  const events = await ids("skein_fleet_events", "session")
  if (events.length > 0) {
    records.count("times events of nodes that have ended were left")
    if (!nodes.hasEnded) records.problem(`the events of ${events.length} sessions are left`)
    await nodes.query("UPDATE skein_fleet_events SET stored_at = now() - interval '2 hours'")
  }
  for (const table of ["skein_fleet_events", "skein_fleet_payloads"]) {
    problem(
      await eventually(
        async () => {
          const [row] = await nodes.query<{ readonly count: string }>(`SELECT COUNT(*) AS count FROM ${table}`)
          return row!.count === "0" ? undefined : `${row!.count} rows of ${table} are left`
        },
        120_000
      )
    )
  }
  const leases = async () =>
    Number((await nodes.query<{ readonly count: string }>("SELECT COUNT(*) AS count FROM skein_fleet_nodes"))[0]!.count)
  problem(
    await eventually(async () => {
      const count = await leases()
      return count === nodes.running.size ? undefined : `${count} leases of ${nodes.running.size} nodes`
    })
  )
  problem(
    await eventually(async () => {
      const count = await nodes.connections
      return count === 0 ? undefined : `the load balancer has ${count} connections`
    })
  )
  for (const { name, process } of nodes.running) {
    problem(
      await eventually(async () => {
        const { requests, sessions, streams } = await process.counts()
        return requests + sessions + streams === 0
          ? undefined
          : `${name} has ${sessions} sessions, ${streams} streams and ${requests} requests`
      })
    )
  }
  for (const node of [...nodes.running]) {
    const end = await nodes.end(node, "SIGTERM")
    if (end !== 143) records.problem(`${node.name} has ended with ${end}`)
  }
  problem(
    await eventually(async () => {
      const count = await leases()
      return count === 0 ? undefined : `${count} leases are left`
    })
  )
}
