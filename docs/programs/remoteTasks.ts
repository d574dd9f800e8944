import type * as Client from "@skein/client/Client"
import type * as RemoteTask from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

// #region call
export const bake = (client: Client.Client, show: (line: string) => void) =>
  client.callTool("bake", { cakes: 3 }, {
    task: {
      augment: true, // In 2025-11-25 the client decides.
      onTask: ({ id }) => show(`The call continues as task ${id}`)
    }
  })
// #endregion

export const begin = (client: Client.Client, keep: (handle: RemoteTask.Handle) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const started = yield* client.startTask("bake", { cakes: 3 })
    if (started._tag === "RemoteTask") yield* keep(started.handle)
    return started
  })

// #region resume
export const finish = (client: Client.Client, handle: RemoteTask.Handle, show: (line: string) => void) =>
  Effect.gen(function*() {
    const task = yield* client.resumeTask(handle)
    const watching = Stream.runForEach(
      task.states,
      ({ status, statusMessage }) => Effect.sync(() => show(`${status}: ${statusMessage ?? ""}`))
    )
    const [result] = yield* Effect.all([task.result, watching], { concurrency: "unbounded" })
    return result
  })
// #endregion
