/** Runs rounds in several processes, and kills and stops them at random. */
import * as Effect from "effect/Effect"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { TokenServer } from "./tokenServer.ts"

export interface Options {
  readonly server: TokenServer
  readonly args: ReadonlyArray<string>
  readonly processes: number
  readonly rounds: number
  /** Which part of the accidents kill a process: half of them by default. The others stop one. */
  readonly kills?: number
  /** The shortest and the longest time of a stop: up to half a second by default. */
  readonly stopMillis?: readonly [min: number, max: number]
  /** Returns a number from 0 to 1. */
  readonly random: () => number
}

export interface Outcome {
  readonly killed: ReadonlySet<number>
  /** How often a process was stopped, and which ones. */
  readonly stops: number
  readonly stopped: ReadonlySet<number>
  readonly errors: ReadonlyArray<string>
}

interface Message {
  readonly error?: string
}

const program = join(import.meta.dirname, "refreshingProcess.ts")

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
}

const start = async (args: ReadonlyArray<string>): Promise<Running> => {
  const child = fork(program, args, {
    execArgv: ["--conditions=@skein/source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  const ended = once(child, "exit")
  await once(child, "message")
  return { child, ended }
}

const end = async ({ child, ended }: Running): Promise<void> => {
  child.kill("SIGKILL")
  await ended
}

/** Runs the rounds, and a last one without accidents. */
export const run = (
  { args, kills = 0.5, processes, random, rounds, server, stopMillis: [min, max] = [0, 500] }: Options
): Effect.Effect<Outcome> => {
  const children: Array<Running> = []
  return Effect.ensuring(
    Effect.promise(async () => {
      const command = [...args, server.url]
      const killed = new Set<number>()
      const errors: Array<string> = []
      const stopped = new Set<number>()
      let stops = 0
      children.push(...await Promise.all(Array.from({ length: processes }, () => start(command))))

      const accident = async (index: number, delay: number): Promise<void> => {
        const { child } = children[index]!
        await sleep(delay)
        if (random() < kills) {
          killed.add(child.pid!)
          await end(children[index]!)
          children[index] = await start(command)
        } else {
          stops++
          stopped.add(child.pid!)
          child.kill("SIGSTOP")
          await sleep(min + random() * (max - min))
          child.kill("SIGCONT")
        }
      }
      // Any process at any time, or the one that requests a token, about the time of the answer.
      const accidents = (): ReadonlyArray<Promise<void>> => {
        if (random() < 0.4) {
          return children.flatMap((_, index) => random() < 0.6 / processes ? accident(index, random() * 150) : [])
        }
        if (random() < 0.5) return []
        const delay = random() * 80
        return [
          server.nextTokenRequest().then((pid) => accident(children.findIndex(({ child }) => child.pid === pid), delay))
        ]
      }

      for (let round = 0; round <= rounds; round++) {
        server.expire()
        // The first round signs in, and the last one uses the tokens that are left.
        const dangers = round === 0 || round === rounds ? [] : accidents()
        const done = children.map(async ({ child, ended }) => {
          const message = once(child, "message").then(([message]) => message as Message)
          child.send("round")
          const { error } = await Promise.race([message, ended.then((): Message => ({}))])
          if (error !== undefined) errors.push(error)
        })
        await Promise.all([...done, ...dangers])
      }
      return { killed, stopped, stops, errors }
    }),
    Effect.promise(() => Promise.all(children.map(end)))
  )
}
