/**
 * One request of a web application, as a process of its own: it begins a sign-in, finishes one, or shows the state of an
 * account. It prints what happened as JSON.
 */
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as WebSignIn from "@skein/auth/WebSignIn"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { MinimumLogLevel } from "effect/References"

/** A request of the application. */
export interface WebRequest {
  /** The request of the account; the parameters of the redirect URI finish a sign-in. */
  readonly want: "signIn" | "state" | { readonly answer: string }
  readonly account: string
  readonly folder: string
  readonly url: string
}

export const redirectUri = "https://app.example/oauth/callback"

const { account, folder, url, want } = JSON.parse(process.argv[2] ?? "{}") as WebRequest

const handled = Effect.gen(function*() {
  const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "App" }), account })
  if (want === "signIn") {
    return yield* Effect.as(oauth.signIn(url), {}).pipe(
      Effect.catchReason("OAuthError", "SignInRequired", ({ url }) => Effect.succeed({ redirect: url.href }))
    )
  }
  if (want === "state") {
    const state = yield* oauth.state(url)
    return { scopes: Option.isSome(state) ? state.value.scopes : null }
  }
  return { finished: (yield* oauth.finish(new URLSearchParams(want.answer))).href }
})

const outcome = handled.pipe(
  Effect.catchTag("OAuthError", ({ message, reason }) => Effect.succeed({ reason: reason._tag, message })),
  Effect.scoped,
  // Its result is all that it may print.
  Effect.provideService(MinimumLogLevel, "Warn"),
  Effect.provide([WebSignIn.layer({ redirectUri }), FileTokenStore.layer({ folder })])
)

if (process.argv[2] !== undefined) {
  const write = (result: unknown) => Effect.sync(() => void process.stdout.write(JSON.stringify(result)))
  void Effect.runPromise(Effect.flatMap(outcome, write))
}
