/** The servers that the HTTP tests serve. */
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const echo = Tool.layer(
  Tool.make("echo", { description: "Says it again.", input: { text: Schema.String } }),
  ({ text }) => Effect.succeed(text)
)

/** A tool that reports progress three times and returns. */
export const report = Tool.layer(
  Tool.make("report", { description: "Tells how far it is." }),
  () => Effect.as(Effect.forEach([1, 2, 3], (progress) => Progress.report({ progress, total: 3 })), "done")
)

/** A tool that waits until the test lets it go on, and the state of its calls. */
export const waiting = () => {
  const go = Deferred.makeUnsafe<void>()
  const started: Array<() => void> = []
  const seen = { started: 0, ended: 0, interrupted: 0 }
  const wait = Effect.suspend(() => {
    seen.started++
    for (const one of started.splice(0)) one()
    return Deferred.await(go)
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => void seen.interrupted++)),
    Effect.ensuring(Effect.sync(() => void seen.ended++))
  )
  const layer = Tool.layer(Tool.make("wait", { description: "Waits." }), () => Effect.as(wait, "waited"))
  /** Succeeds when this many calls have started. */
  const running = (count: number): Effect.Effect<void> =>
    Effect.suspend(() =>
      seen.started >= count ? Effect.void : Effect.flatMap(
        Effect.callback<void>((resume) => void started.push(() => resume(Effect.void))),
        () => running(count)
      )
    )
  return { layer, wait, seen, running, go: Deferred.succeed(go, undefined) }
}

/** A server called `test` with these definitions. */
export const server = <const L extends ReadonlyArray<McpServer.Definitions>>(...definitions: L) =>
  McpServer.layer({ name: "test", version: "1.0.0" }, ...definitions)

/** Repeats an effect, once per turn of the event loop, until it returns true. Sockets need a varying time. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() =>
    condition()
      ? Effect.void
      : Effect.flatMap(Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve))), () =>
        until(condition))
  )

/** A tool that ignores interruption. */
export const stubborn = () =>
  Tool.layer(
    Tool.make("stubborn", { description: "Goes on for ever." }),
    () => Effect.uninterruptible(Effect.as(Effect.never, ""))
  )
