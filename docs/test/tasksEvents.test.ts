/** The program of the guide about events, with a client and a payment service over sockets. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import type { RemoteTask } from "@skein/client/RemoteTask"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createHmac } from "node:crypto"
import { payments, Shop } from "../programs/tasksEvents.ts"

const key = Buffer.alloc(32, "k")

/** Sends a signed webhook, and returns the status of the response. */
const post = (url: string, id: string, payment: object) =>
  Effect.promise(async () => {
    const body = JSON.stringify(payment)
    const seconds = Math.floor(Date.now() / 1000)
    const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")
    const headers = {
      "webhook-id": id,
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${signature}`
    }
    const { status } = await fetch(new URL("/webhooks/payments", url), { method: "POST", headers, body })
    return status
  })

it.live("programs/tasksEvents.ts: a webhook continues a task, and its repetition is received once", () =>
  Effect.scoped(Effect.gen(function*() {
    const server = NodeHttp.layer({ port: 0, routes: payments(`whsec_${key.toString("base64")}`) }).pipe(
      Layer.provide(Layer.provideMerge(Shop, MemoryTasks.layer()))
    )
    const { url } = Context.get(yield* Layer.build(server), NodeHttp.Server)
    const client = yield* Client.make(Http.transport({ url }))
    const started = yield* client.startTask("checkout", { order: "4711" })
    expect(started._tag).toBe("RemoteTask")
    const task = started as RemoteTask
    expect(yield* post(url, "msg_1", { order: "4711", receipt: "R1" })).toBe(204)
    expect(yield* post(url, "msg_1", { order: "4711", receipt: "R1" })).toBe(204)
    expect((yield* task.result).content).toMatchObject([{ text: "4711 is paid: R1" }])
    expect(yield* post(url, "msg_1", { order: "4711", receipt: "R1" })).toBe(204)
    expect(yield* post(url, "msg_2", { order: 4711 })).toBe(400)
  })))
