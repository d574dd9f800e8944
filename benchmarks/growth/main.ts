/**
 * How the costs of a fleet on PostgreSQL grow: `npm run bench -- growth [--quick]`. It measures the costs of single
 * operations with few and many rows, leases and listening connections, computes from them what 10 to 10,000 nodes with 10
 * million sessions need, and simulates an outage of the database. Nothing here runs 10,000 nodes.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { describe } from "../lib/machine.ts"
import { count, markdown } from "../lib/table.ts"
import { echo, memoryOf, type Node, open, post, startNode, stopNodes } from "../fleet/nodes.ts"
import { Databases } from "../tasks/databases.ts"
import { measureEvents, measureLeases, measureRows, type Rows } from "./database.ts"
import { measureCommits, measureFanout, measureReceipts } from "./fanout.ts"
import { capacitiesOf, costsOf, type Load, type Machines, type Units } from "./model.ts"
import { simulate } from "./simulation.ts"

/** How much to measure. */
interface Plan {
  /** Numbers of sessions in the database, and operations with each number. */
  readonly rows: ReadonlyArray<number>
  readonly operations: number
  /** Numbers of leases, and of listening connections: PostgreSQL has 200 at most. */
  readonly leases: ReadonlyArray<number>
  readonly listeners: ReadonlyArray<number>
  readonly notifications: number
  readonly commits: number
  readonly events: number
  /** Sessions in the memory of a node, and in the simulation. */
  readonly inMemory: number
  readonly simulated: number
}

const thorough: Plan = {
  rows: [10_000, 100_000, 1_000_000],
  operations: 2_000,
  leases: [10, 100, 1_000, 10_000],
  listeners: [10, 50, 150],
  notifications: 1_000,
  commits: 10_000,
  events: 50_000,
  inMemory: 5_000,
  simulated: 1_000_000
}
const quick: Plan = {
  rows: [1_000, 20_000],
  operations: 100,
  leases: [10, 1_000],
  listeners: [5, 20],
  notifications: 50,
  commits: 200,
  events: 1_000,
  inMemory: 300,
  simulated: 20_000
}

const sizes = [10, 100, 1_000, 10_000]

/**
 * A session has 20 calls within 10 minutes, and expires when it was idle for the default of 30 minutes. The load balancer
 * sends the calls of a session to one node, which is another one than that of its `initialize`.
 */
const load: Load = { sessions: 10_000_000, calls: 20, changes: 2, active: 600, idle: 1_800, balancer: "hash" }

/** PostgreSQL has 16 cores; a node has one core, and 1 GiB for sessions. */
const machines: Omit<Machines, "commits"> = { cores: 16, memory: 2 ** 30 }

/**
 * Used where a part was not measured. From `npm run bench -- growth` on 2026-11-30, with a million rows; `call` from
 * `npm run bench -- fleet`.
 */
const defaults: Units & Pick<Machines, "commits"> = {
  create: 277,
  find: 133,
  change: 217,
  touch: 20,
  skip: 8,
  expire: 5,
  wake: 26,
  pass: 17,
  renew: 182,
  renewPerNode: 0.72,
  call: 45,
  receive: 21,
  row: 963,
  own: 1_503,
  copy: 1_573,
  log: { create: 846, find: 341, change: 113, touch: 378 },
  connection: 1_300_000,
  commits: 3_650
}

type Measured = Partial<typeof defaults>

const run = <A>(effect: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))

const decimal = (value: number, digits = 1): string => value.toFixed(value < 10 ? digits : 0)

const rowsPart = async (databases: Databases, plan: Plan): Promise<Measured> => {
  const found = await run(measureRows(databases, plan.rows, plan.operations))
  const of = (figure: (rows: Rows) => string): ReadonlyArray<string> => found.map(figure)
  const operations = Object.keys(found[0]!.costs)
  console.log(markdown(["sessions in PostgreSQL", ...of(({ rows }) => count(rows))], [
    ["bytes of a session in the table", ...of(({ tableBytes }) => count(tableBytes))],
    ["the same in the indexes", ...of(({ indexBytes }) => count(indexBytes))],
    ...operations.flatMap((operation) => [
      [`${operation}: processor time, µs`, ...of(({ costs }) => decimal(costs[operation]!.micros))],
      [`${operation}: blocks`, ...of(({ costs }) => decimal(costs[operation]!.blocks))],
      [`${operation}: bytes of the log`, ...of(({ costs }) => count(costs[operation]!.logBytes))]
    ])
  ]))
  const { costs, indexBytes, tableBytes } = found.at(-1)!
  const { change, create, expire, find, skip, touch } = costs as {
    readonly [operation: string]: NonNullable<typeof costs[string]>
  }
  const events = await run(measureEvents(databases, plan.events))
  console.log(`\nA stored event: ${decimal(events.micros)} µs of processor time, ${count(events.bytes)} bytes.\n`)
  return {
    create: create!.micros,
    find: find!.micros,
    change: change!.micros,
    touch: touch!.micros,
    skip: skip!.micros,
    expire: expire!.micros,
    row: tableBytes + indexBytes,
    log: {
      create: create!.logBytes,
      find: find!.logBytes,
      change: change!.logBytes,
      touch: touch!.logBytes
    }
  }
}

const leasesPart = async (databases: Databases, plan: Plan): Promise<Measured> => {
  const found = await run(measureLeases(databases, plan.leases, plan.operations))
  console.log(
    markdown(["leases in PostgreSQL", ...found.map(([nodes]) => count(nodes))], [
      ["renewal of one: processor time, µs", ...found.map(([, { micros }]) => decimal(micros))],
      ["the same: blocks", ...found.map(([, { blocks }]) => decimal(blocks))]
    ]) + "\n"
  )
  const [first, last] = [found[0]!, found.at(-1)!]
  const renewPerNode = Math.max(0, (last[1].micros - first[1].micros) / (last[0] - first[0]))
  return { renewPerNode, renew: Math.max(0, first[1].micros - renewPerNode * first[0]) }
}

const fanoutPart = async (databases: Databases, plan: Plan): Promise<Measured> => {
  const found = await measureFanout(databases, plan.listeners, plan.notifications)
  const receive = await run(measureReceipts(databases, Math.max(1_000, plan.notifications * 10)))
  const commits = await run(measureCommits(databases, plan.commits))
  console.log(markdown(["connections that listen", ...found.map(({ listeners }) => count(listeners))], [
    ["a notification to all: processor time of PostgreSQL, µs", ...found.map(({ all }) => count(all))],
    ["the same, from 8 connections at once, µs", ...found.map(({ atOnce }) => count(atOnce))],
    ["to a channel without listeners, µs", ...found.map(({ none }) => count(none))],
    ["memory of a connection, MB", ...found.map(({ memory }) => decimal(memory / 1e6))]
  ]))
  console.log(`\nA node uses ${decimal(receive)} µs for a message that it receives.\n`)
  console.log(
    markdown(["16 connections, a second", "opened", "changed (with a notification)"], [
      ["synchronous_commit = on", count(commits.on.creates), count(commits.on.changes)],
      ["off", count(commits.off.creates), count(commits.off.changes)]
    ]) + "\n"
  )
  const [first, last] = [found[0]!, found.at(-1)!]
  return {
    wake: Math.max(0, (last.all - first.all) / (last.listeners - first.listeners)),
    pass: Math.max(0, (last.none - first.none) / (last.listeners - first.listeners)),
    receive,
    connection: last.memory,
    commits: commits.on.changes
  }
}

const memoryPart = async (databases: Databases, plan: Plan): Promise<Measured> => {
  const nodes: Array<Node> = []
  try {
    const url = await databases.create("postgres")
    for (let n = 0; n < 2; n++) nodes.push(await startNode(url))
    const [first, second] = nodes as [Node, Node]
    for (let n = 0; n < 50; n++) await post(second, await open(first, first), echo)
    const before = [await memoryOf(first), await memoryOf(second)] as const
    const sessions: Array<string> = []
    for (let n = 0; n < plan.inMemory; n++) sessions.push(await open(first, first))
    const own = (await memoryOf(first) - before[0]) / plan.inMemory
    for (const session of sessions) await post(second, session, echo)
    const copy = (await memoryOf(second) - before[1]) / plan.inMemory
    console.log(
      markdown(["bytes of an idle session in a node", ""], [
        ["that has opened it", count(own)],
        ["that has looked it up", count(copy)]
      ]) + "\n"
    )
    return { own, copy }
  } finally {
    await stopNodes(nodes)
  }
}

const printModel = (plan: Plan, { commits, ...units }: typeof defaults): void => {
  const all = sizes.map((nodes) => costsOf(units, load, nodes))
  const inTurn = sizes.map((nodes) => costsOf(units, { ...load, balancer: "in turn" }, nodes))
  const capacities = sizes.map((nodes) => capacitiesOf(units, load, { ...machines, commits }, nodes))
  const outcomes = sizes.map((nodes, index) => {
    const busy = Math.min(0.5, (all[index]!.cores - all[index]!.leaseCores) / machines.cores)
    const { cores } = machines
    return simulate(units, { nodes, sessions: load.sessions, simulated: plan.simulated, cores, busy, outage: 10 })
  })
  const of = (figure: (costs: typeof all[number]) => string, from = all): ReadonlyArray<string> => from.map(figure)
  console.log(markdown(["computed: nodes, with 10 million sessions", ...sizes.map(count)], [
    [
      "connections that listen, and at most",
      ...of((costs) => `${count(costs.listening)}, ${count(costs.connections)}`)
    ],
    ["statements a second for leases and removals", ...of(({ leases }) => count(leases))],
    ["look-ups a second, by a hash", ...of(({ finds }) => count(finds))],
    ["look-ups a second, in turn", ...of(({ finds }) => count(finds), inTurn)],
    ["rows a second that are written because they are used", ...of(({ touches }) => count(touches))],
    ["connections a second that are woken", ...of(({ wakes }) => count(wakes))],
    ["cores of PostgreSQL", ...of(({ cores }) => decimal(cores))],
    ["of them for leases", ...of(({ leaseCores }) => decimal(leaseCores, 2))],
    ["of them for notifications", ...of(({ wakeCores }) => decimal(wakeCores, 2))],
    ["cores of PostgreSQL, in turn", ...of(({ cores }) => decimal(cores), inTurn)],
    ["cores of a node", ...of(({ nodeCores }) => decimal(nodeCores, 2))],
    ["MB of a node for sessions", ...of(({ nodeBytes }) => count(nodeBytes / 1e6))],
    ["MB a second of the log", ...of(({ log }) => decimal(log / 1e6))],
    ["million sessions at most, and by what", ...capacities.map(([first]) => described(first!))],
    ["then", ...capacities.map(([, second]) => described(second!))]
  ]))
  console.log(`\n${count(units.row * load.sessions / 1e9)} GB in PostgreSQL.\n`)
  console.log(markdown(["simulated: the database is down for 10 s; nodes", ...sizes.map(count)], [
    ["longest renewal before, ms", ...outcomes.map(({ renewal }) => decimal(renewal * 1_000))],
    ["longest renewal afterwards, ms", ...outcomes.map(({ renewalAfter }) => decimal(renewalAfter * 1_000))],
    ["leases lost while the database is up", ...outcomes.map(({ lost }) => count(lost))],
    ["seconds until all sessions are read again", ...outcomes.map(({ recovery }) => decimal(recovery))]
  ]))
}

const described = ({ resource, sessions }: { readonly resource: string; readonly sessions: number }): string =>
  `${decimal(sessions / 1e6)}: ${resource}`

const parts = { rows: rowsPart, leases: leasesPart, fanout: fanoutPart, memory: memoryPart } as const
type Part = keyof typeof parts | "model"

const usage = `usage: npm run bench -- growth [--quick] [--only=${Object.keys(parts).join("|")}|model]`

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let only: Part | undefined
  for (const arg of args) {
    const value = arg.slice("--only=".length)
    if (arg.startsWith("--only=") && (value === "model" || Object.hasOwn(parts, value))) only = value as Part
    else if (arg !== "--quick") throw new Error(`${arg}: not an option\n${usage}`)
  }
  console.log(`${describe()} · npm run bench -- ${["growth", ...args].join(" ")}\n`)
  const plan = args.includes("--quick") ? quick : thorough
  const units = { ...defaults }
  if (only !== "model") {
    const databases = new Databases()
    try {
      for (const [name, part] of Object.entries(parts)) {
        if (only === undefined || only === name) Object.assign(units, await part(databases, plan))
      }
    } finally {
      await databases.stop()
    }
  }
  if (only === undefined || only === "model") printModel(plan, units)
}
