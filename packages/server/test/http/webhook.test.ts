/** Standard Webhooks (https://www.standardwebhooks.com): requests that are signed by hand, over a socket. */
import { describe, expect, it } from "@effect/vitest"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Webhook from "@skein/server/Webhook"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const server = fixtures.server(fixtures.echo)
const key = Buffer.alloc(24, "k")
const secret = `whsec_${key.toString("base64")}`
const other = Buffer.alloc(32, "o")

const sign = (id: string, seconds: number | string, body: string | Buffer, by = key): string =>
  `v1,${createHmac("sha256", by).update(`${id}.${seconds}.`).update(body).digest("base64")}`

const now = () => Math.floor(Date.now() / 1000)

interface Changes {
  readonly id?: string | undefined
  readonly seconds?: string | number
  readonly signature?: string | undefined
  readonly method?: string
}

/** A request with a valid signature, except for the changes. */
const request = (body: string | Buffer, changes: Changes = {}): kit.Request => {
  const { id, method = "POST", seconds, signature } = { id: "msg_1", seconds: now(), ...changes }
  return {
    method,
    path: "/webhooks/payments",
    headers: {
      "webhook-id": id,
      "webhook-timestamp": String(seconds),
      "webhook-signature": "signature" in changes ? signature : sign(id ?? "", seconds, body)
    },
    body
  }
}

/** Both forms of a handler, with the webhooks that it has received. */
const forms: ReadonlyArray<
  readonly [string, (options: Webhook.Options, received: Array<Webhook.Received>) => NodeRoutes.Routes]
> = [
  ["layer", (options, received) =>
    NodeRoutes.make(
      Webhook.layer("/webhooks/payments", options, (webhook) =>
        Effect.suspend(() => {
          received.push(webhook)
          return webhook.body === "fail" ? Effect.die(new Error("broken")) : Effect.void
        }))
    )],
  ["handler", (options, received) =>
    NodeRoutes.handlers({
      "/webhooks/payments": Webhook.handler(options, async (webhook) => {
        received.push(webhook)
        if (webhook.body === "fail") throw new Error("broken")
      })
    })]
]

describe.each(forms)("Webhook.%s", (form, routes) => {
  const open = (options: Partial<Webhook.Options> = {}) => {
    const received: Array<Webhook.Received> = []
    return Effect.map(
      kit.serve(server, { routes: routes({ secrets: secret, ...options }, received) }),
      (listening) => ({
        received,
        send: (sent: kit.Request) =>
          Effect.map(kit.send(listening, sent), ({ status, text }) => [status, text] as const)
      })
    )
  }

  it.live("passes a signed webhook to the handler, and responds 204", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open()
      const seconds = now()
      expect(yield* send(request("{\"ä\":1}", { seconds }))).toEqual([204, ""])
      expect(received).toEqual([{ id: "msg_1", timestamp: seconds * 1000, body: "{\"ä\":1}" }])
      expect(yield* send(request("", { id: "msg_2" }))).toEqual([204, ""])
    })))

  it.live("responds 401 to a signature that does not match", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open()
      const refused = [401, "no signature in webhook-signature matches"]
      expect(yield* send(request("a", { signature: sign("msg_1", now(), "a", other) }))).toEqual(refused)
      expect(yield* send({ ...request("a"), body: "b" })).toEqual(refused)
      expect(yield* send(request("a", { signature: sign("msg_2", now(), "a") }))).toEqual(refused)
      expect(yield* send(request("a", { signature: sign("msg_1", now() - 100, "a") }))).toEqual(refused)
      expect(received).toEqual([])
    })))

  it.live("responds 401 to a time that is further away than the tolerance", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open()
      const refused = [401, "webhook-timestamp is too far from the time of the server"]
      expect(yield* send(request("a", { seconds: now() - 310 }))).toEqual(refused)
      expect(yield* send(request("a", { seconds: now() + 310 }))).toEqual(refused)
      expect(yield* send(request("a", { seconds: now() - 200 }))).toEqual([204, ""])
      expect(yield* send(request("a", { seconds: now() + 200 }))).toEqual([204, ""])
      expect(received).toHaveLength(2)
    })))

  it.live("responds 400 to malformed headers, and to a body that is not UTF-8", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open()
      const id = [400, "webhook-id must have 1 to 512 characters, and no full stop"]
      expect(yield* send(request("a", { id: undefined }))).toEqual(id)
      expect(yield* send(request("a", { id: "x".repeat(513) }))).toEqual(id)
      expect(yield* send(request("a", { id: "a.b" }))).toEqual(id)
      const time = [400, "webhook-timestamp must be a time in seconds"]
      for (const seconds of ["", "now", "1e9", `${now()}.5`, "-5"]) {
        expect(yield* send(request("a", { seconds }))).toEqual(time)
      }
      const signature = [400, "webhook-signature has no signature v1,<base64>"]
      for (const each of [undefined, "", "v1,", "v1,AAAA", "v1a,AAAA", sign("msg_1", now(), "a").slice("v1,".length)]) {
        expect(yield* send(request("a", { signature: each }))).toEqual(signature)
      }
      expect(yield* send(request(Buffer.from([0xff])))).toEqual([400, "the body is not UTF-8"])
      expect(received).toEqual([])
    })))

  it.live("responds 413 to a body above maxBodyBytes", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open({ maxBodyBytes: 10 })
      const refused = [413, "the body exceeds maxBodyBytes (10)"]
      expect(yield* send(request("a".repeat(10)))).toEqual([204, ""])
      expect(yield* send(request("a".repeat(11)))).toEqual(refused)
      const chunked = request("a".repeat(11))
      expect(yield* send({ ...chunked, headers: { ...chunked.headers, "transfer-encoding": "chunked" } })).toEqual(
        refused
      )
      expect(received).toHaveLength(1)
    })))

  it.live("bounds a body at 1 MiB by default", () =>
    Effect.scoped(Effect.gen(function*() {
      const { send } = yield* open()
      expect(yield* send(request("a".repeat(1_048_576)))).toEqual([204, ""])
      expect(yield* send(request("a".repeat(1_048_577)))).toEqual([413, "the body exceeds maxBodyBytes (1048576)"])
    })))

  it.live("accepts each of several secrets and signatures", () =>
    Effect.scoped(Effect.gen(function*() {
      const { send } = yield* open({ secrets: [secret, Redacted.make(other.toString("base64"))] })
      const wrong = sign("msg_1", now(), "a", Buffer.alloc(24, "w"))
      for (const by of [key, other]) {
        const seconds = now()
        const right = sign("msg_1", seconds, "a", by)
        expect(yield* send(request("a", { seconds, signature: `v1a,x ${wrong} ${right}` }))).toEqual([204, ""])
      }
      expect((yield* send(request("a", { signature: wrong })))[0]).toBe(401)
    })))

  it.live("responds 500 if the handler fails", () =>
    Effect.scoped(Effect.gen(function*() {
      const { received, send } = yield* open()
      expect((yield* send(request("fail")))[0]).toBe(500)
      expect(yield* send(request("again"))).toEqual([204, ""])
      expect(received).toHaveLength(2)
    })))

  it.live("takes POST only", () =>
    Effect.scoped(Effect.gen(function*() {
      const { send } = yield* open()
      expect((yield* send({ method: "GET", path: "/webhooks/payments" }))[0]).toBe(form === "layer" ? 404 : 405)
    })))
})

describe("Webhook", () => {
  // The example of the specification's libraries.
  it.effect("verifies a known signature at its time", () =>
    Effect.gen(function*() {
      const received: Array<Webhook.Received> = []
      const secrets = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
      const route = Webhook.layer("/", { secrets }, (webhook) => Effect.sync(() => void received.push(webhook)))
      const app = yield* HttpRouter.toHttpEffect(route)
      const post = HttpServerRequest.fromWeb(
        new Request("http://localhost/", {
          method: "POST",
          headers: {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
          },
          body: "{\"test\": 2432232314}"
        })
      )
      const sent = Effect.map(
        Effect.provideService(app, HttpServerRequest.HttpServerRequest, post),
        ({ status }) => status
      )
      yield* TestClock.setTime(1_614_265_330_000 - 300_001)
      expect(yield* sent).toBe(401)
      yield* TestClock.adjust(1)
      expect(yield* sent).toBe(204)
      expect(received).toMatchObject([{ id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330_000 }])
    }))

  it("refuses invalid secrets without showing them", () => {
    const wrong = "a secret of Webhook must be \"whsec_\" and base64 of 24 to 64 bytes"
    for (const secrets of ["whsec_short", "whsec_?", `whsec_${Buffer.alloc(65).toString("base64")}`, ""]) {
      expect(() => Webhook.handler({ secrets }, () => {})).toThrow(wrong)
    }
    expect(() => Webhook.handler({ secrets: [] }, () => {})).toThrow("Webhook needs at least one secret")
  })
})
