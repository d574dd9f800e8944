/**
 * The side of a process that is measured: does what it is told, and answers.
 */
import { cpuTime } from "../lib/machine.ts"
import type { Burst, Command, Reply } from "./wire.ts"

/** Does what only this process knows how to do. */
export type Obey = (command: Command) => Promise<unknown>

export const say = (reply: Reply): void => void process.send?.(reply)

const collect = (globalThis as { readonly gc?: () => void }).gc

const memory = async (): Promise<NodeJS.MemoryUsage> => {
  // What ended is often let go of a few turns of the event loop later.
  for (let round = 0; round < 5; round++) {
    collect?.()
    await new Promise((later) => setTimeout(later, 50))
  }
  return process.memoryUsage()
}

/** Runs tasks to their ends for so long, so many at a time. `run` is given what says whether there is another one to begin. */
export const burst = async (millis: number, run: (next: () => boolean) => Promise<void>): Promise<Burst> => {
  let tasks = 0
  const begin = performance.now()
  const before = cpuTime()
  await run(() => performance.now() - begin < millis && ++tasks > 0)
  return { tasks, wall: performance.now() - begin, cpu: cpuTime() - before }
}

/** Serves until the benchmark goes. */
export const serve = (obey: Obey): void => {
  const answer = (command: Command): unknown => {
    switch (command.do) {
      case "cpu":
        return cpuTime()
      case "memory":
        return memory()
      default:
        return obey(command)
    }
  }
  const reply = async (command: Command): Promise<void> => {
    try {
      say({ value: await answer(command) })
      if (command.do === "close") process.disconnect()
    } catch (error) {
      say({ error: error instanceof Error ? error.stack ?? error.message : String(error) })
    }
  }
  process.on("message", (command: Command) => void reply(command))
  process.on("disconnect", () => process.exit())
}
