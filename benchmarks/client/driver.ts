/**
 * The process of a client under test. The benchmark tells it over IPC what to do, and it answers with figures.
 */
import type { Client, Connect, Job, Target, Turns } from "./face.ts"
import { checkGreeting, checkReport, checkTools } from "./wire.ts"

/** What the process is told to do. */
export type Command =
  | { readonly do: "connect"; readonly target: Target; readonly discover: boolean }
  | { readonly do: "burst"; readonly job: Job; readonly inFlight: number; readonly millis: number }
  | { readonly do: "many"; readonly target: Target; readonly count: number }
  | { readonly do: "memory" }

/** What a burst came to. Times in milliseconds. */
export interface Burst {
  readonly turns: number
  readonly wall: number
  /** Processor time of the process. */
  readonly cpu: number
}

/** What the process says. */
export type Reply = { readonly value: unknown } | { readonly error: string }

const collect = (globalThis as { readonly gc?: () => void }).gc

/** Collects until nothing more goes: what ended is often let go of a few turns of the event loop later. */
const settle = async (): Promise<NodeJS.MemoryUsage> => {
  let before = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    collect?.()
    await new Promise((later) => setTimeout(later, 25))
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && before - heapUsed < 10_000) break
    before = heapUsed
  }
  return process.memoryUsage()
}

const burst = async (client: Client, job: Job, inFlight: number, millis: number, from: number): Promise<Burst> => {
  let taken = 0
  let answered = 0
  const begin = performance.now()
  const before = process.cpuUsage()
  const turns: Turns = {
    next: () => performance.now() - begin < millis ? from + ++taken : undefined,
    greeted: (turn, text) => {
      checkGreeting(turn, text)
      answered++
    },
    reported: (turn, report) => {
      checkReport(turn, report)
      answered++
    },
    listed: (tools) => {
      checkTools(tools)
      answered++
    }
  }
  await client.drive(job, inFlight, turns)
  const wall = performance.now() - begin
  const { system, user } = process.cpuUsage(before)
  if (answered !== taken) throw new Error(`${answered} of ${taken} were answered`)
  return { turns: answered, wall, cpu: (system + user) / 1_000 }
}

/** One call that is answered rightly. */
export const greetOnce = async (client: Client): Promise<string> => {
  let said = ""
  let left = 1
  await client.drive("greet", 1, {
    next: () => left-- > 0 ? 1 : undefined,
    greeted: (turn, text) => {
      checkGreeting(turn, text)
      said = String(text)
    },
    reported: () => {},
    listed: () => {}
  })
  return said
}

/** Does what it is told until the benchmark goes. */
export const serve = (connect: Connect): void => {
  const clients: Array<Client> = []
  let turns = 0
  const obey = async (command: Command): Promise<unknown> => {
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
        return settle()
    }
  }
  process.on("message", (command: Command) => {
    const reply = (reply: Reply) => process.send?.(reply)
    obey(command).then(
      (value) => reply({ value }),
      (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) })
    )
  })
  process.on("disconnect", () => process.exit())
}
