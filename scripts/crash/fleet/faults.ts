/**
 * The faults of a walk. Each ends when the fleet can serve again, but for the aftermath.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Node, Nodes } from "./nodes.ts"

/** A fault. `random` gives numbers from 0 to 1, and `strikes` is called with the node of the fault. */
export type Fault = (nodes: Nodes, random: () => number, strikes: (node: Node) => void) => Promise<void>

/** The most nodes, and the fewest. */
const most = 5
const fewest = 3

const one = ({ running }: Nodes, random: () => number, strikes: (node: Node) => void): Node => {
  const node = [...running][Math.floor(random() * running.size)]!
  strikes(node)
  return node
}

/** Milliseconds between two bounds; more often the short ones. */
const between = (from: number, to: number, random: () => number): number => from + (to - from) * random() ** 2

const kill: Fault = async (nodes, random, strikes) => {
  await nodes.end(one(nodes, random, strikes), "SIGKILL")
  await sleep(between(0, 3_000, random))
  if (nodes.running.size < fewest) await nodes.join()
}

/** A node is stopped, for longer than its lease in some cases. */
const stop: Fault = async (nodes, random, strikes) => {
  const { kill } = one(nodes, random, strikes).process
  kill("SIGSTOP")
  await sleep(between(200, 9_000, random))
  kill("SIGCONT")
}

/** A node runs a tenth of the time. */
const slow: Fault = async (nodes, random, strikes) => {
  const { kill } = one(nodes, random, strikes).process
  for (const end = performance.now() + between(1_000, 6_000, random); performance.now() < end;) {
    kill("SIGSTOP")
    await sleep(90)
    kill("SIGCONT")
    await sleep(10)
  }
}

const join: Fault = async (nodes, random, strikes) => {
  if (nodes.running.size < most) await nodes.join()
  else await drain(nodes, random, strikes)
}

const drain: Fault = async (nodes, random, strikes) => {
  const node = one(nodes, random, strikes)
  if (nodes.running.size <= fewest) await nodes.join()
  await nodes.end(node, "SIGTERM")
}

const restartDatabase: Fault = ({ postgres }) => postgres.restartImmediate()

const killDatabase: Fault = async ({ postgres }, random) => {
  await postgres.kill()
  await sleep(between(200, 4_000, random))
  await postgres.start()
}

/** A node loses its connections to the database, and can open new ones a while later. */
const cutDatabase: Fault = async (nodes, random, strikes) => {
  const restore = one(nodes, random, strikes).database.cut()
  await sleep(between(0, 9_000, random))
  restore()
}

/** The other nodes lose their connections to a node. */
const cutNode: Fault = async (nodes, random, strikes) => {
  const restore = one(nodes, random, strikes).address.cut()
  await sleep(between(500, 5_000, random))
  restore()
}

/** The notifications of the database reach a node late. */
const delayNotifications: Fault = async (nodes, random, strikes) => {
  const { database } = one(nodes, random, strikes)
  database.delay(between(100, 4_000, random))
  await sleep(between(1_000, 8_000, random))
  database.delay(0)
}

export const faults: Readonly<Record<string, Fault>> = {
  "a node killed": kill,
  "a node stopped": stop,
  "a node slow": slow,
  "a node joins": join,
  "a node drains": drain,
  "the database restarted": restartDatabase,
  "the database killed": killDatabase,
  "a node cut from the database": cutDatabase,
  "a node cut from the others": cutNode,
  "late notifications": delayNotifications
}
