/** The program of the page in `Browser.test.ts`. */
import * as BrowserTokenStore from "@skein/auth/BrowserTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { SignIn } from "@skein/auth/SignIn"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/** A person who agrees at once. The page of the authorization server answers with the redirect as JSON. */
const person = (asked: Array<string>): Layer.Layer<SignIn> =>
  Layer.succeed(SignIn, {
    open: () =>
      Effect.succeed({
        redirectUri: "http://127.0.0.1:41999/callback",
        authorize: (url) =>
          Effect.promise(async () => {
            asked.push(url.href)
            const { location } = await (await fetch(url)).json() as { readonly location: string }
            return new URL(location).searchParams
          })
      })
  })

/** Calls a tool with a new client and a new `OAuth`, as a page does after each load. */
export const call = (url: string, signOut = false): Promise<unknown> => {
  const asked: Array<string> = []
  const program = Effect.gen(function*() {
    const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }), dpop: "auto" })
    const client = yield* Client.make(Http.transport({ url, credentials: oauth }), { revisions: ["2025-06-18"] })
    const { content } = yield* client.callTool("brew")
    const state = yield* oauth.state(url)
    if (signOut) yield* oauth.signOut(url)
    return {
      content,
      asked: asked.length,
      issuer: Option.getOrUndefined(state)?.issuer,
      isSignedIn: Option.isSome(yield* oauth.state(url))
    }
  })
  return Effect.runPromise(
    Effect.provide(Effect.scoped(program), [person(asked), BrowserTokenStore.layer({ storage: "indexedDB" })])
  )
}
