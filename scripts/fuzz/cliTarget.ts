/** The command line with a hostile server. No text of the server reaches the terminal as it is. */
import { ClientError } from "@skein/client/ClientError"
import * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import { call } from "../../packages/cli/src/internal/calls/call.ts"
import { sanitize } from "../../packages/cli/src/internal/base/format.ts"
import type { Terminal } from "../../packages/cli/src/internal/base/process.ts"
import { declineAll, onTerminal } from "../../packages/cli/src/internal/connection/terminalElicitation.ts"
import { invocationOf } from "../../packages/cli/test/invocation.ts"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import { described, passed } from "./clientTarget.ts"
import { HostileServer } from "./hostileServer.ts"
import * as Samples from "./samples.ts"
import { printableLogger, type Report, type Target } from "./target.ts"

/** A person who types at random. */
const person = (random: Random.Random, show: (text: string) => void): Terminal => {
  let lines = 0
  return {
    writeLine: (line) => Effect.sync(() => show(line)),
    readLine: (prompt) =>
      Effect.sync(() => {
        show(prompt)
        return ++lines > 40 ? undefined : random.pick(["y", "y", "", "a", "1", "-", "e", "c", "d", Samples.escapes])
      })
  }
}

const run = (random: Random.Random, revision: Revision.Revision, report: Report) =>
  Effect.gen(function*() {
    const server = new HostileServer(random, revision, report)
    const show = (text: string): void => {
      if (Samples.isUnprintable(text)) {
        report(`${revision}: unprintable characters on the terminal: ${JSON.stringify(text).slice(0, 1_000)}`)
      }
    }
    const console = {
      // `nodeProcess` sanitizes results on a terminal.
      print: (text: string) => Effect.sync(() => show(sanitize(text))),
      warn: show
    }
    const invocation = invocationOf({
      tool: random.chance(0.3) ? undefined : random.pick(Samples.toolNames),
      resume: random.chance(0.1) ? { taskId: server.taskId } : undefined,
      verbose: random.chance(0.7),
      json: random.chance(0.3),
      leave: random.chance(0.2),
      timeout: 5_000
    })
    const elicitation = random.chance(0.7)
      ? onTerminal(person(random, show), "server")
      : declineAll(console)
    const calling = yield* Effect.forkScoped(
      Effect.provide(call({ transport: server.transport }, invocation, console), elicitation),
      { startImmediately: true }
    )
    for (let count = random.below(4); count > 0; count--) server.say()
    if (!(yield* passed(() => calling.pollUnsafe() !== undefined))) {
      return report(`${revision}: the command hangs: ${JSON.stringify(invocation)}`)
    }
    const exit = calling.pollUnsafe()!
    if (exit._tag === "Success") return
    if (Cause.hasDies(exit.cause)) report(`${revision}: died: ${Cause.pretty(exit.cause).slice(0, 3_000)}`)
    const failure = exit.cause.reasons.find(Cause.isFailReason)?.error
    if (failure === undefined) return
    const wrong = failure instanceof ClientError ? described(failure) : `not a ClientError: ${String(failure)}`
    if (wrong !== undefined) report(`${revision}: ${wrong}`)
  })

export const cliTarget: Target = {
  name: "cli",
  run: (random, report) =>
    Effect.scoped(run(random, random.pick(Revision.all), report)).pipe(
      Effect.provide(Layer.merge(TestClock.layer(), Logger.layer([printableLogger(report)])))
    )
}
