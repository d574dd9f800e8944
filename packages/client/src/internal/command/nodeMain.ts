/**
 * `skein-call` as a process of Node.
 */
import { createInterface } from "node:readline"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Result from "effect/Result"
import { ClientError } from "../../ClientError.ts"
import * as Stdio from "../../Stdio.ts"
import { declining, onTerminal, type Terminal } from "./asking.ts"
import { call, exitCode, type Out } from "./call.ts"
import { type Invocation, parse, usage } from "./invocation.ts"
import { tame } from "./words.ts"

// How long the end may take after a signal: a server's process has two graces of two seconds and one of one.
const grace = 6_000

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

const tell = (line: string): void => void process.stderr.write(`${line}\n`)

const out: Out = {
  tell,
  // Waits until it is written, for what is not written when a process exits is lost. Nobody may want it any more: then so be it.
  print: (text) =>
    Effect.callback<void>((resume) => {
      const shown = process.stdout.isTTY ? tame(text) : text
      process.stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`, () => resume(Effect.void))
    })
}

const terminal: Terminal = {
  say: (line) => Effect.sync(() => tell(line)),
  ask: (prompt) =>
    Effect.callback((resume) => {
      const lines = createInterface({ input: process.stdin, output: process.stderr })
      let answer: string | undefined
      // The terminal sends no signal while lines are edited.
      lines.on("SIGINT", () => void process.kill(process.pid, "SIGINT"))
      lines.question(prompt, (line) => {
        answer = line
        lines.close()
      })
      // Closing lets go of stdin, and must come before the next question.
      lines.on("close", () => resume(Effect.succeed(answer)))
      return Effect.sync(() => lines.close())
    })
}

const transportOf = ({ env, headers, target, verbose }: Invocation) =>
  target._tag === "Url"
    ? Effect.map(
      Effect.promise(() => import("../../NodeHttp.ts")),
      ({ transport }) => transport({ url: target.url, headers })
    )
    : Effect.succeed(
      Stdio.transport({ command: target.command, args: target.args, env, stderr: verbose ? "inherit" : "capture" })
    )

const nameOf = ({ target }: Invocation): string =>
  target._tag === "Url" ? target.url.host : [target.command, ...target.args].join(" ")

const run = (invocation: Invocation): Effect.Effect<number, ClientError> => {
  const answers = process.stdin.isTTY
    ? onTerminal(terminal, tame(nameOf(invocation)))
    : declining(terminal.say)
  return Effect.flatMap(transportOf(invocation), (transport) => call(transport, invocation, out)).pipe(
    Effect.provide(answers),
    Effect.provideService(References.LogToStderr, true),
    Effect.provideService(References.MinimumLogLevel, invocation.verbose ? "Debug" : "None")
  )
}

const told = (cause: Cause.Cause<ClientError>): readonly [code: number, report: string] => {
  const error = Cause.squash(cause)
  return error instanceof ClientError ? [exitCode(error), error.message] : [70, Cause.pretty(cause)]
}

/**
 * Runs the command as the whole life of this process. SIGINT, SIGTERM and SIGHUP interrupt it: the call, or its task,
 * is cancelled on the wire and the server ended, within a grace; a second one exits at once.
 */
export const main = (argv: ReadonlyArray<string>): void => {
  const parsed = parse(argv, process)
  if (Result.isFailure(parsed)) {
    tell(`skein-call: ${parsed.failure}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  if (parsed.success === "help") return void process.stdout.write(usage)
  // Whoever reads the result may leave before its end, and a terminal may be gone.
  process.stdout.on("error", () => process.exit(0))
  for (const stream of [process.stdin, process.stderr]) stream.on("error", () => {})
  let code: number | undefined
  const fiber = Effect.runFork(run(parsed.success))
  const onSignal = (signal: keyof typeof signals): void => {
    if (code !== undefined) process.exit(signals[signal])
    code = signals[signal]
    setTimeout(() => process.exit(signals[signal]), grace).unref()
    fiber.interruptUnsafe()
  }
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, onSignal)
  fiber.addObserver((exit) => {
    if (exit._tag === "Success") return process.exit(code ?? exit.value)
    if (Cause.hasInterruptsOnly(exit.cause)) return process.exit(code ?? signals.SIGINT)
    const [status, report] = told(exit.cause)
    process.stderr.write(`skein-call: ${tame(report)}\n`, () => process.exit(code ?? status))
  })
}
