/** Tasks that are started after the process of the server was killed and another one has replaced it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { run } from "../../../server/test/stdio/Child.ts"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import * as Stdio from "../../src/Stdio.ts"
import { type Json, shapes } from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-restart-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const reconnect = { initialDelay: "50 millis", jitter: "none" } as const

/** A user who answers when the test lets them. */
const user = (answer: Latch.Latch): Layer.Layer<Elicitation.Elicitation> =>
  Elicitation.layer({ form: () => Effect.as(answer.await, Elicitation.accept({ people: 4 })) })

const textOf = ({ content }: Json): string => content[0].text

/** Starts a task, which must not wait for the answer of the user, and then reads its result. */
const startAndFinish = (client: Client.Client, answer: Latch.Latch, retry: boolean) =>
  Effect.gen(function*() {
    const started = yield* client.startTask("book", {}, { retry })
    if (started._tag !== "RemoteTask") return assert.fail("no task")
    yield* answer.open
    assert.strictEqual(textOf(yield* started.result), "A table for 4")
  })

for (const shape of shapes) {
  const revisions = [shape]
  describe(shape, () => {
    for (const when of ["while the server is down", "after the reconnect"] as const) {
      it.live(`stdio: startTask starts a task ${when}`, () =>
        Effect.scoped(Effect.gen(function*() {
          const program = fileURLToPath(new URL("./fixtures/server.ts", import.meta.url))
          const transport = Stdio.transport({
            command: process.execPath,
            args: ["--conditions=@skein/source", program, join(yield* folder, "tasks.db")]
          })
          const answer = Latch.makeUnsafe(false)
          const client = yield* Effect.provide(Client.make(transport, { revisions, reconnect }), user(answer))
          yield* client.listTools()
          const pid = Number(textOf(yield* client.callTool("pid")))
          const tags: Array<string> = []
          yield* Effect.forkScoped(
            Stream.runForEach(client.status, ({ _tag }) => Effect.sync(() => void tags.push(_tag)))
          )
          process.kill(pid, "SIGKILL")
          yield* Effect.repeat(Effect.sleep(5), { until: () => tags.includes("Reconnecting") })
          if (when === "after the reconnect") {
            yield* Effect.repeat(Effect.sleep(5), { until: () => tags.at(-1) === "Connected" })
          }
          yield* startAndFinish(client, answer, false)
        })), 60_000)
    }

    it.live(
      "HTTP: startTask starts a task at a server that does not know the session",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const file = join(yield* folder, "tasks.db")
          const start = (port: number) =>
            Effect.gen(function*() {
              const child = yield* Effect.acquireRelease(
                Effect.sync(() => run("../../../../client/test/tasks/fixtures/server.ts", [file, String(port)])),
                (child) => Effect.sync(() => child.process.kill("SIGKILL"))
              )
              const line = yield* Effect.promise(() => child.stdout.until("port "))
              return { child, port: Number(line.slice(5)) }
            })
          const first = yield* start(0)
          const answer = Latch.makeUnsafe(false)
          const transport = Http.transport({ url: `http://127.0.0.1:${first.port}/mcp` })
          const client = yield* Effect.provide(Client.make(transport, { revisions, reconnect }), user(answer))
          yield* client.listTools()
          first.child.process.kill("SIGKILL")
          yield* Effect.promise(() => first.child.exit)
          yield* start(first.port)
          // With `retry`, since the request may be sent on a socket of the first process.
          yield* startAndFinish(client, answer, true)
        })),
      60_000
    )
  })
}
