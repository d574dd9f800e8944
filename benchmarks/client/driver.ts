/**
 * The process of a client under test. The benchmark sends it commands over IPC, and it replies with measurements.
 */
import type { Client, Connect, Job, Target, Turns } from "./testClient.ts"
import { checkGreeting, checkReport, checkTools } from "./serverData.ts"

/** A command to the process. */
export type Command =
  | { readonly do: "connect"; readonly target: Target; readonly discover: boolean }
  | { readonly do: "burst"; readonly job: Job; readonly inFlight: number; readonly millis: number }
  | { readonly do: "many"; readonly target: Target; readonly count: number }
  | { readonly do: "memory" }

/** The measurements of a burst. Times are in milliseconds. */
export interface Burst {
  readonly turns: number
  readonly wall: number
  /** Processor time of the process. */
  readonly cpu: number
}

/** A reply of the process. */
export type Reply = { readonly value: unknown } | { readonly error: string }

const collect = (globalThis as { readonly gc?: () => void }).gc

/**
 * Collects garbage until the heap stops shrinking. Closed objects are often released a few turns of the event loop
 * later.
 */
const collectGarbage = async (): Promise<NodeJS.MemoryUsage> => {
  let before = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    collect?.()
    await new Promise((resolve) => setTimeout(resolve, 25))
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && before - heapUsed < 10_000) break
    before = heapUsed
  }
  return process.memoryUsage()
}

const burst = async (client: Client, job: Job, inFlight: number, millis: number, from: number): Promise<Burst> => {
  let started = 0
  let completed = 0
  const begin = performance.now()
  const before = process.cpuUsage()
  const turns: Turns = {
    next: () => performance.now() - begin < millis ? from + ++started : undefined,
    greeted: (turn, text) => {
      checkGreeting(turn, text)
      completed++
    },
    reported: (turn, report) => {
      checkReport(turn, report)
      completed++
    },
    listed: (tools) => {
      checkTools(tools)
      completed++
    }
  }
  await client.drive(job, inFlight, turns)
  const wall = performance.now() - begin
  const { system, user } = process.cpuUsage(before)
  if (completed !== started) throw new Error(`${completed} of ${started} operations completed`)
  return { turns: completed, wall, cpu: (system + user) / 1_000 }
}

/** Makes one call, checks its result, and returns the text. */
export const greetOnce = async (client: Client): Promise<string> => {
  let result = ""
  let remaining = 1
  await client.drive("greet", 1, {
    next: () => remaining-- > 0 ? 1 : undefined,
    greeted: (turn, text) => {
      checkGreeting(turn, text)
      result = String(text)
    },
    reported: () => {},
    listed: () => {}
  })
  return result
}

/** Executes commands until the benchmark disconnects. */
export const serve = (connect: Connect): void => {
  const clients: Array<Client> = []
  let turns = 0
  const execute = async (command: Command): Promise<unknown> => {
    switch (command.do) {
      case "connect": {
        const client = await connect(command.target)
        clients.unshift(client)
        if (command.discover) await client.discover()
        return undefined
      }
      case "burst": {
        const done = await burst(clients[0]!, command.job, command.inFlight, command.millis, turns)
        turns += done.turns
        return done
      }
      case "many": {
        const total = clients.length + command.count
        const one = async (): Promise<void> => {
          while (clients.length + opening < total) {
            opening++
            const client = await connect(command.target)
            clients.push(client)
            opening--
            await greetOnce(client)
          }
        }
        let opening = 0
        await Promise.all(Array.from({ length: 8 }, one))
        return undefined
      }
      case "memory":
        return collectGarbage()
    }
  }
  process.on("message", (command: Command) => {
    const reply = (reply: Reply) => process.send?.(reply)
    execute(command).then(
      (value) => reply({ value }),
      (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) })
    )
  })
  process.on("disconnect", () => process.exit())
}
