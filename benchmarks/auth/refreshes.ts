/** The time of many concurrent calls whose token has just expired: one of them refreshes it, and the others wait. */
import * as DevServer from "@skein/auth/DevServer"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Protect from "@skein/auth/Protect"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"

/** How much to measure. */
export interface Plan {
  readonly refreshes: number
  readonly concurrentCalls: number
}

/** Samples in milliseconds, and the refreshes that the authorization server counted for each. */
export interface Measured {
  readonly valid: ReadonlyArray<number>
  readonly expired: ReadonlyArray<number>
  readonly counts: ReadonlyArray<number>
}

const Server = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  Tool.layer(Tool.make("brew"), () => Effect.succeed("tea"))
)

const ada = Layer.sync(SignIn, () => {
  const user = TestUser.make({ name: "ada" })
  return {
    open: () =>
      Effect.succeed({
        redirectUri: "http://127.0.0.1:41997/callback",
        authorize: (url: URL) => Effect.mapError(user.signIn(url), ({ message }) => new SignInError({ message }))
      })
  }
})

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** One round: calls with a valid token, and the same calls after it has expired for the client. */
const round = (concurrentCalls: number) => {
  let ahead = 0
  return Effect.gen(function*() {
    const dev = yield* DevServer.make()
    const port = yield* freePort
    const url = `http://127.0.0.1:${port}/mcp`
    const protection = Protect.make({ resource: url, verify: TokenVerifier.jwt({ issuer: dev.issuer }) })
    const bounds = { limits: { maxInFlightRequests: 2 * concurrentCalls } }
    yield* Layer.build(Layer.provide(NodeHttp.layer({ port, protection, ...bounds }), Server))
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe() + ahead
    const shifted: Clock.Clock = Object.assign(Object.create(clock), {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
    const calls = Effect.gen(function*() {
      const credentials = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Benchmark" }) })
      const client = yield* Client.make(ClientHttp.transport({ url, credentials }))
      const all = Effect.gen(function*() {
        const start = performance.now()
        const each = Array.from({ length: concurrentCalls }, () => client.callTool("brew"))
        yield* Effect.all(each, { concurrency: "unbounded", discard: true })
        return performance.now() - start
      })
      yield* all
      const valid = yield* all
      // Tokens last 10 minutes.
      ahead = 590_000
      const expired = yield* all
      return { valid, expired, refreshes: (yield* dev.counts).refreshes }
    })
    return yield* Effect.provideService(calls, Clock.Clock, shifted)
  }).pipe(Effect.scoped, Effect.provide([ada, TokenStore.layerMemory]))
}

/** Measures a refresh several times, each with servers and a client of its own. */
export const measure = async ({ concurrentCalls, refreshes }: Plan): Promise<Measured> => {
  const rounds = await Effect.runPromise(
    Effect.forEach(Array.from({ length: refreshes }), () => round(concurrentCalls))
  )
  return {
    valid: rounds.map(({ valid }) => valid),
    expired: rounds.map(({ expired }) => expired),
    counts: rounds.map(({ refreshes }) => refreshes)
  }
}
