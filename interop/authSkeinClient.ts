/** Skein's client with `OAuth`, for the protected servers of other authors. */
import type * as OAuth from "@skein/auth/OAuth"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import type { Revision } from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export const redirectUri = "http://127.0.0.1:41996/callback"

/** Ada, who signs in wherever she is asked to, and a store in memory. */
export const services = Layer.merge(
  Layer.sync(SignIn, () => {
    const user = TestUser.make({ name: "ada" })
    return {
      open: () =>
        Effect.succeed({
          redirectUri,
          authorize: (url: URL) => Effect.mapError(user.signIn(url), ({ message }) => new SignInError({ message }))
        })
    }
  }),
  TokenStore.layerMemory
)

/** Connects, and returns a function that calls a tool and returns the text of its result. */
export const connect = (resource: string, credentials: OAuth.OAuth, revision?: Revision) =>
  Effect.map(
    Client.make(
      ClientHttp.transport({ url: resource, credentials }),
      revision === undefined ? {} : { revisions: [revision] }
    ),
    (client) => (name: string) =>
      Effect.map(
        client.callTool(name),
        ({ content }) => (content as ReadonlyArray<{ readonly text: string }>)[0]!.text
      )
  )

/** Runs an effect with a clock that is ahead by some milliseconds. */
export const withClockAhead =
  (millis: () => number) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const now = () => clock.currentTimeMillisUnsafe() + millis()
      const ahead = Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: now,
        currentTimeMillis: Effect.sync(now)
      })
      return Effect.provideService(effect, Clock.Clock, ahead)
    })
