import { expect, it } from "@effect/vitest"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Client from "@skein/client/Client"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

it.effect("2025-11-25 · a server with an unlimited page size lists all tasks in one page", () =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(server.serve), { revisions: ["2025-11-25"] })
    for (let task = 0; task < 3; task++) yield* client.startTask("bake")
    const { nextCursor, tasks } = yield* client.listTasksPage()
    expect(tasks).toHaveLength(3)
    expect(nextCursor).toBeUndefined()
  }).pipe(
    Effect.scoped,
    Effect.provide(
      McpServer.layer(
        { name: "bakery", version: "1.0.0" },
        Task.layer(Task.make("bake"), () => Effect.succeed("Done")),
        Tasks.layer({ list: "always", pageSize: Infinity })
      ).pipe(Layer.provide(MemoryTasks.layer()))
    )
  ))
