/**
 * Discovers the authorization server of one server again, so that a change of it is noticed. After a discovery that led to
 * no new tokens it is not repeated within `discoveryInterval`: a server that refuses each request would otherwise cause
 * twice as many requests.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { OAuthError } from "../protocol/OAuthError.ts"
import { discover, type Discovery } from "../protocol/discovery.ts"
import type { Environment } from "./environment.ts"
import { serverUrl } from "../protocol/urls.ts"
import { now } from "./records.ts"

interface Last {
  readonly at: number
  readonly named: string | undefined
  readonly exit: Exit.Exit<Discovery, OAuthError>
}

/** See the module. One instance per server. */
export const makeRecentDiscovery = (environment: Environment, url: URL) => {
  let last: Last | undefined

  /** Discovers the authorization server. `named` is the metadata of the challenge, `issuer` that of the tokens. */
  const find = (named: string | undefined, issuer: string | undefined): Effect.Effect<Discovery, OAuthError> =>
    Effect.gen(function*() {
      const { definition: { options }, outbound, settings } = environment
      const time = yield* now
      if (last !== undefined && last.named === named && time - last.at < settings.discoveryInterval) {
        return yield* last.exit
      }
      const configured = "client" in options ? options.client?.issuer : "issuer" in options ? options.issuer : undefined
      const preferred = [configured, issuer].filter((each) => each !== undefined)
      const place = { named, configured: settings.servers.get(serverUrl(url))?.resourceMetadata }
      const exit = yield* Effect.exit(discover(outbound, url, place, preferred))
      last = { at: time, named, exit }
      return yield* exit
    })

  /** The next discovery is made in any case. */
  const forget = (): void => {
    last = undefined
  }

  return { find, forget }
}
