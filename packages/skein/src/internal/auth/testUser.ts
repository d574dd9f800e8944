/**
 * A person for tests: a browser of forms, cookies and redirects, without scripts, who signs in and agrees, or does not.
 */
import type * as Core from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"

/** Options of `TestUser.make`. */
export interface TestUserOptions {
  /** The name to sign in with. Default `ada`. */
  readonly name?: string | undefined
  /** The password, for servers that ask for one. Default `password`. */
  readonly password?: string | undefined
  /** Whether the person agrees. Default `allow`. */
  readonly answer?: "allow" | "deny" | undefined
}

/** A page that a visit ended at. */
export interface TestPage {
  /** Its address, after all redirects. */
  readonly url: URL
  /** Its HTTP status. */
  readonly status: number
  /** The whole text, with its tags. */
  readonly html: string
}

/**
 * A person with a browser, which visits addresses of loopback only. The cookies stay from visit to visit. The promises reject at a
 * page that cannot be answered.
 */
export interface TestUser {
  /** Opens an authorization request, signs in, answers, and returns the parameters of the redirect to the client. */
  readonly signIn: (url: URL | string) => Promise<URLSearchParams>
  /** Opens a page, fills its forms, and follows every redirect. Returns the first page without a form. */
  readonly visit: (url: URL | string) => Promise<TestPage>
  /** Opens one page and follows its redirects, without filling a form. */
  readonly open: (url: URL | string) => Promise<TestPage>
  /** The addresses that the person has seen, in order, without their queries. */
  readonly visited: ReadonlyArray<string>
}

/** Makes people for tests. */
export const TestUser: {
  /**
   * Makes a person.
   *
   * @example
   * const ada = await TestUser.make({ name: "ada" })
   * const signIn = loopback({ open: async (url) => void await ada.visit(url) })
   */
  readonly make: (options?: TestUserOptions) => Promise<TestUser>
} = {
  make: async (options) => {
    const core: Core.TestUser = (await import("@skein/auth/TestUser")).make(options)
    return {
      signIn: (url) => Effect.runPromise(core.signIn(url)),
      visit: (url) => Effect.runPromise(core.visit(url)),
      open: (url) => Effect.runPromise(core.open(url)),
      visited: core.visited
    }
  }
}
