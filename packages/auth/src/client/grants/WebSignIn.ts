/**
 * Signs in the users of a web application: the application redirects the user to the sign-in page, and the user comes
 * back to a route of the application.
 *
 * **When to use.** In a server that calls MCP servers on behalf of its users. Make one `OAuth` per user, with an
 * `account` that names the user, over a `TokenStore` that all processes of the application share.
 *
 * A call that needs a sign-in fails with `RedirectRequired` as a cause. Answer with a redirect to its `url`. The route
 * of `redirectUri` calls `OAuth.finish` with the parameters of its request, in any process that shares the store.
 *
 * **Gotchas.** The route must take the account from the session of the browser, never from the request: otherwise an
 * attacker sends a link with an answer of their own, and the victim works in the attacker's account (login CSRF, RFC
 * 9700, 4.7). `OAuth.finish` accepts a `state` once, and only for the account that began the sign-in.
 *
 * @example
 * const program = Effect.provide(main, WebSignIn.layer({ redirectUri: "https://app.example/oauth/callback" }))
 */
import { printable, quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isRegistered, parseLoopback } from "../protocol/redirectUri.ts"
import { RedirectRequired, SignIn, SignInError } from "./SignIn.ts"

/** The options of `layer` and `make`. */
export interface Options {
  /**
   * The URL of the route that users come back to, exactly as it is registered: `https`, or `http` on the loopback
   * interface (2026-07-28, communication security).
   */
  readonly redirectUri: string
}

/**
 * Makes the service. Use {@link layer} unless you combine several.
 *
 * @example
 * const signIn = WebSignIn.make({ redirectUri: "https://app.example/oauth/callback" })
 */
export const make = ({ redirectUri }: Options): SignIn["Service"] => ({
  applicationType: "web",
  open: ({ fixed, redirectUris, resource }) => {
    const fail = (message: string) => Effect.fail(new SignInError({ message }))
    const isHttps = URL.parse(redirectUri)?.protocol === "https:" && !redirectUri.includes("#")
    if (!isHttps && parseLoopback(redirectUri) === undefined) {
      return fail(
        `redirectUri must be an https URL without a fragment, or an http URL of localhost: ${quote(redirectUri)}`
      )
    }
    if (fixed && redirectUris.length > 0 && !isRegistered(redirectUri, redirectUris)) {
      const registered = redirectUris.map((uri) => quote(uri)).join(", ")
      return fail(`The client is not registered with the redirectUri ${quote(redirectUri)}, but with ${registered}`)
    }
    const message = `The user must sign in at ${printable(resource, 512)}: redirect them to the url of this error, ` +
      "and call OAuth.finish when they come back."
    return Effect.succeed({ redirectUri, authorize: (url) => Effect.fail(new RedirectRequired({ message, url })) })
  }
})

/**
 * Provides `SignIn` with the redirects of a web application.
 *
 * @example
 * const program = Effect.provide(main, WebSignIn.layer({ redirectUri: "https://app.example/oauth/callback" }))
 */
export const layer = (options: Options): Layer.Layer<SignIn> => Layer.sync(SignIn, () => make(options))
