/** Credentials that a person must sign in for, and servers that require them. */
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Credentials from "../../../src/Credentials.ts"
import type { Exchange, Json } from "./connection.ts"

/** A person who signs in when `finish` runs, and who was asked `asked` times. */
export class Person {
  asked = 0
  interrupted = 0
  isSignedIn = false
  readonly challenges: Array<Credentials.Challenge> = []
  #signingIn = Deferred.makeUnsafe<boolean, unknown>()

  readonly credentials: Credentials.Credentials["Service"] = {
    headers: () => Effect.succeed({ authorization: this.isSignedIn ? "Bearer good" : "Bearer expired" }),
    refused: (challenge) =>
      Effect.suspend(() => {
        this.asked++
        this.challenges.push(challenge)
        this.#signingIn = Deferred.makeUnsafe()
        return Effect.onInterrupt(Deferred.await(this.#signingIn), () => Effect.sync(() => this.interrupted++))
      })
  }

  /** Ends the sign-in: it has succeeded. */
  readonly finish = Effect.suspend(() => {
    this.isSignedIn = true
    return Deferred.succeed(this.#signingIn, true)
  })

  /** Ends the sign-in with a failure. */
  readonly fail = (error: unknown) => Effect.suspend(() => Deferred.fail(this.#signingIn, error))

  /** The token is no longer valid. */
  readonly expire = Effect.sync(() => {
    this.isSignedIn = false
  })

  /** Whether a request may pass; otherwise it is refused. */
  readonly allows = (hit: Exchange): boolean => {
    if (this.isSignedIn && hit.headers.authorization === "Bearer good") return true
    hit.respond(401, "sign in", { "www-authenticate": "Bearer" })
    return false
  }

  /** A script that refuses requests until the person has signed in. */
  readonly guard = (script: (hit: Exchange) => void) => (hit: Exchange): void => {
    if (this.allows(hit)) script(hit)
  }
}

const capabilities = { tools: {}, resources: { subscribe: true } }
const tools = { ttlMs: 0, cacheScope: "private", tools: [] }

/** Answers the requests of any revision that a client sends automatically, and passes the others on. */
export const anyRevision = (
  script: (hit: Exchange) => void,
  options?: ScriptedHttpServer.SessionOptions<Json>
) =>
(hit: Exchange): void => {
  const method = hit.json?.method
  if (method === "initialize") {
    const serverInfo = { name: "scripted", version: "1" }
    return hit.respondResult({ protocolVersion: options?.revision ?? "2025-11-25", capabilities, serverInfo }, {
      "mcp-session-id": "s-1"
    })
  }
  if (method === "server/discover") {
    return hit.respondResult({
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities,
      ttlMs: 0,
      cacheScope: "private"
    })
  }
  if (method === "tools/list") return hit.respondResult(tools)
  if (hit.json?.params?._meta?.["io.modelcontextprotocol/protocolVersion"] !== undefined) return script(hit)
  return ScriptedHttpServer.session<Json>(script, options)(hit)
}

/** The result of a tool call. */
export const called = { resultType: "complete", content: [{ type: "text", text: "done" }] }
