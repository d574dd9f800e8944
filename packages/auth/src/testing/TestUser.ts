/**
 * A person for tests: a browser of forms, cookies and redirects, without scripts, who signs in and agrees, or does not.
 * It answers the pages of `DevServer`, of `Proxy`, and of most authorization servers with plain forms.
 *
 * @example
 * const ada = TestUser.make({ name: "ada" })
 * const parameters = yield* ada.signIn(authorizationUrl)
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Effect from "effect/Effect"
import { makeBrowser } from "./browser.ts"

/** The person met a page that cannot be answered, or left loopback, or visited too many pages. */
export class TestUserError extends PrintableError.tagged("TestUserError")<{
  readonly cause?: unknown
}> {}

/** The person, and the answers of the person. */
export interface Options {
  /** The name to sign in with. Default `ada`. */
  readonly name?: string | undefined
  /** The password, for servers that ask for one. Default `password`. */
  readonly password?: string | undefined
  /** Whether the person agrees. Default `allow`. */
  readonly answer?: "allow" | "deny" | undefined
}

/** A page that a visit ended at. */
export interface Page {
  /** Its address, after all redirects. */
  readonly url: URL
  /** Its HTTP status. */
  readonly status: number
  /** The whole text, with its tags. */
  readonly html: string
}

/** A person with a browser. The cookies stay from visit to visit. */
export interface TestUser {
  /**
   * Opens an authorization request, signs in, answers, and returns the parameters of the redirect to the client. The
   * redirect URI itself is not visited.
   */
  readonly signIn: (url: URL | string) => Effect.Effect<URLSearchParams, TestUserError>
  /**
   * Opens a page, fills its forms, and follows every redirect, that to the client's redirect URI too. Returns the first
   * page without a form.
   */
  readonly visit: (url: URL | string) => Effect.Effect<Page, TestUserError>
  /** Opens one page and follows its redirects, without filling a form. */
  readonly open: (url: URL | string) => Effect.Effect<Page, TestUserError>
  /** The addresses that the person has seen, in order, without their queries. */
  readonly visited: ReadonlyArray<string>
}

/**
 * Makes a person. The browser visits addresses of loopback only.
 *
 * @example
 * const grace = TestUser.make({ name: "grace", answer: "deny" })
 */
export const make = (options: Options = {}): TestUser => {
  const { answer = "allow", name = "ada", password = "password" } = options
  const browser = makeBrowser({ name, password, answer })
  const attempt = <A>(run: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({
      try: run,
      catch: (cause) => new TestUserError({ message: cause instanceof Error ? cause.message : String(cause), cause })
    })
  const pageOf = (url: URL | string, fillForms: boolean) =>
    attempt(async (signal) =>
      (await browser.visit(new URL(url), { signal, stopAt: undefined, fillForms })).ended as Page
    )
  return {
    signIn: (url) =>
      attempt(async (signal) => {
        const redirectUri = new URL(url).searchParams.get("redirect_uri")
        if (redirectUri === null) throw new Error("the address is not an authorization request: it has no redirect_uri")
        const { ended } = await browser.visit(new URL(url), { signal, stopAt: redirectUri, fillForms: true })
        if (!(ended instanceof URL)) {
          throw new Error(`the sign-in ended at a page (${ended.status}): ${browser.textOf(ended.html)}`)
        }
        return ended.searchParams
      }),
    visit: (url) => pageOf(url, true),
    open: (url) => pageOf(url, false),
    visited: browser.visited
  }
}
