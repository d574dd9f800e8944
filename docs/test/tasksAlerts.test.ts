/** The program of the guide about alerts. */
import { expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import { durable, ended, plain, settled, submit, work } from "../../packages/tasks/test/engine/kit.ts"
import { alerts } from "../programs/tasksAlerts.ts"

it.effect("programs/tasksAlerts.ts: an unexpected error is posted, and one in the words of the tool is not", () => {
  const posted: Array<unknown> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const { body, url } = request
      posted.push([url, body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(body.body)) : body._tag])
      return HttpClientResponse.fromWeb(request, new Response(null, { status: 204 }))
    })
  )
  const engine = MemoryTasks.layer().pipe(
    Layer.provide(alerts("https://chat.example/hook")),
    Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
  )
  return Effect.gen(function*() {
    yield* work({
      brew: plain(() => Effect.fail({ message: "No water" })),
      bake: durable(() => Effect.die(new Error("The oven is broken")))
    })
    yield* ended((yield* submit("brew")).id)
    const { id } = yield* submit("bake")
    yield* ended(id)
    yield* settled
    expect(posted).toEqual([["https://chat.example/hook", { text: `Failed: bake ${id.slice(0, 8)}` }]])
  }).pipe(Effect.scoped, Effect.provide(engine))
})
