/** Servers in their own processes, observed from outside. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Lines } from "../../stdio/Child.ts"

export interface Process {
  readonly port: number
  readonly kill: (signal: NodeJS.Signals) => void
  readonly stdout: Lines
  readonly stderr: Lines
  /** The exit code of the process. */
  readonly exit: Effect.Effect<number | string>
}

/** Runs a program of this folder, and waits until it listens or exits. */
export const run = (
  program: string,
  options: object = {},
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<Process, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => {
        const path = fileURLToPath(new URL(`./${program}`, import.meta.url))
        const args = ["--conditions=@skein/source", path, JSON.stringify({ port: 0, ...options })]
        return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } })
      }),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    (child) =>
      Effect.promise(async () => {
        const exit = new Promise<number | string>((resolve) => {
          child.once("close", (code, signal) => resolve(code ?? signal!))
        })
        const stdout = new Lines(child.stdout)
        const stderr = new Lines(child.stderr)
        const line = await Promise.race([stderr.until("Listening on"), exit])
        const port = Number(/:(\d+)\//.exec(String(line))?.[1])
        return { port, stdout, stderr, exit: Effect.promise(() => exit), kill: (signal) => void child.kill(signal) }
      })
  )
