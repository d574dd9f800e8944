/**
 * The command loop of a measured process: executes commands of the benchmark and replies.
 */
import { cpuTime } from "../lib/machine.ts"
import type { Burst, Command, Reply } from "./commands.ts"

/** Executes the commands that depend on the library. */
export type Execute = (command: Command) => Promise<unknown>

export const sendReply = (reply: Reply): void => void process.send?.(reply)

const collect = (globalThis as { readonly gc?: () => void }).gc

const memory = async (): Promise<NodeJS.MemoryUsage> => {
  // Closed objects are often released a few turns of the event loop later.
  for (let round = 0; round < 5; round++) {
    collect?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return process.memoryUsage()
}

/** Measures a burst. `run` receives a function that returns whether another task may start. */
export const burst = async (millis: number, run: (next: () => boolean) => Promise<void>): Promise<Burst> => {
  let tasks = 0
  const begin = performance.now()
  const before = cpuTime()
  await run(() => performance.now() - begin < millis && ++tasks > 0)
  return { tasks, wall: performance.now() - begin, cpu: cpuTime() - before }
}

/** Executes commands until the benchmark disconnects. */
export const runCommandLoop = (execute: Execute): void => {
  const dispatch = (command: Command): unknown => {
    switch (command.do) {
      case "cpu":
        return cpuTime()
      case "memory":
        return memory()
      default:
        return execute(command)
    }
  }
  const reply = async (command: Command): Promise<void> => {
    try {
      sendReply({ value: await dispatch(command) })
      if (command.do === "close") process.disconnect()
    } catch (error) {
      sendReply({ error: error instanceof Error ? error.stack ?? error.message : String(error) })
    }
  }
  process.on("message", (command: Command) => void reply(command))
  process.on("disconnect", () => process.exit())
}
