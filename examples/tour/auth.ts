/**
 * The authorization of `npm start -- --auth`: an authorization server on this computer, with two users and no passwords,
 * and the protection of the tea house, which accepts its tokens.
 */
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import type * as Http from "@skein/server/Http"
import type * as Effect from "effect/Effect"

/** The values with which `main.ts` protects the server, and `welcome.ts` explains how to sign in. */
export interface Auth {
  readonly issuer: string
  readonly users: ReadonlyArray<string>
  readonly protection: Effect.Effect<Http.Protection>
}

/** Starts the authorization server, which ends with this process. `port` is the port of the tea house. */
export const requireSignIn = async (port: number): Promise<Auth> => {
  const resource = `http://127.0.0.1:${port}/mcp`
  const { issuer, users } = await DevServer.start({ scopes: ["tea:visit"], resources: [resource] })
  const protection = Protect.make({
    resource,
    resourceName: "The tea house",
    verify: TokenVerifier.jwt({ issuer }),
    scopes: ["tea:visit"]
  })
  return { issuer, users: users.map(({ name }) => name), protection }
}
