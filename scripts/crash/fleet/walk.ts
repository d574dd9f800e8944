/**
 * A random walk: sessions whose clients call tools, answer questions, subscribe, log and end at random, while the nodes of
 * their fleet and its database have faults.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { randomFrom } from "../../../packages/tasks/test/crash/seededRandom.ts"
import { Clients, pick } from "./clients.ts"
import { faults } from "./faults.ts"
import { Nodes } from "./nodes.ts"
import { settle } from "./settle.ts"

export interface Plan {
  readonly seed: number
  readonly minutes: number
  readonly sessions: number
  /** The names of the faults to choose from; all by default. */
  readonly only?: ReadonlyArray<string>
}

/** Milliseconds between two faults, at most. */
const faultPause = 6_000

/** Walks, prints a line about each minute, and returns the problems. */
export const walk = async (
  { minutes, only = Object.keys(faults), seed, sessions }: Plan,
  print: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const nodes = await Nodes.open(3)
  const clients = new Clients(nodes)
  const { records } = clients
  try {
    const running = Promise.all(
      Array.from({ length: sessions }, (_, index) => clients.run(index, randomFrom(seed + index + 1)))
    )
    const end = records.now + minutes * 60_000
    const ofDatabase = new Set(["the database restarted", "the database killed"])
    // Two faults at a time, at most one of them of the whole database.
    const others = only.filter((what) => !ofDatabase.has(what))
    const walks = [[only, faultPause], [others, 3 * faultPause]] as const
    let printed = 0
    await Promise.all(walks.map(async ([names, pause], index) => {
      const random = randomFrom(seed - index)
      while (names.length > 0 && records.now < end) {
        await sleep(random() * pause)
        const what = pick(names, random)
        const fault = { what, from: records.now, to: Infinity, pids: new Set<number>() }
        records.faults.push(fault)
        await faults[what]!(nodes, random, ({ process }) => fault.pids.add(process.pid))
        fault.to = records.now
        if (records.now - printed < 60_000) continue
        printed = records.now
        print(`  ${Math.round(printed / 60_000)} min, ${records.faults.length} faults: ${records.summary}`)
      }
    }))
    clients.stop()
    await running
    await settle(nodes, clients)
    print(`  ${records.faults.length} faults; ${records.summary}`)
  } finally {
    await nodes.close()
  }
  const lines = nodes.log.split("\n").filter((line) =>
    /\] (WARN|ERROR|FATAL) /.test(line) && !line.endsWith(": logged")
  )
  // The nodes expect all faults.
  records.problems.push(...lines.filter((line) => !line.includes("] WARN ")))
  if (records.problems.length > 0) print(lines.slice(-40).join("\n"))
  return records.problems
}
