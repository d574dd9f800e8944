/** The program of the guide about the output of tasks. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import type { RemoteTask } from "@skein/client/RemoteTask"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Reports, show } from "../programs/tasksOutput.ts"

it.live("programs/tasksOutput.ts: a client and the application read the chapters", () =>
  Effect.scoped(Effect.gen(function*() {
    const server = Layer.provideMerge(
      NodeHttp.layer({ port: 0 }),
      Layer.provideMerge(Reports, MemoryTasks.layer())
    )
    const context = yield* Layer.build(server)
    const client = yield* Client.make(Http.transport({ url: Context.get(context, NodeHttp.Server).url }))
    const task = (yield* client.startTask("report", { chapters: 2 })) as RemoteTask
    yield* Effect.provideContext(show(task.id, 0), context)
    yield* task.result
    const { contents } = yield* client.readResource(`task-output://${task.id}?from=1`)
    expect(contents).toMatchObject([{ mimeType: "application/json" }])
    expect(JSON.parse((contents[0] as { readonly text: string }).text)).toEqual({
      items: [{ chapter: 2, text: "The text of chapter 2" }],
      next: 2,
      count: 2,
      hasEnded: true
    })
  })))
