/**
 * What changes on a server, as streams.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { Desk } from "../calls.ts"
import { isEmpty, nothing, wantedOf } from "./filter.ts"
import { follow } from "./follow.ts"
import { Inbox } from "./inbox.ts"
import { listen } from "./listen.ts"
import type { Run } from "./turn.ts"
import { Watchers } from "./watch.ts"

/** See the module's text. */
export interface Changes {
  readonly stream: (filter: Filter, options?: Options) => Stream.Stream<Change, ClientError>
  /** Hears every notification of the server. */
  readonly hear: (notification: Notification) => void
}

/** Makes what a client needs; what it sends when runs are over lives in the scope. */
export const make = (desk: Desk, bufferSize: number, scope: Scope.Scope): Changes => {
  const watchers = new Watchers(desk, scope)
  const stream: Changes["stream"] = (filter, options = {}) =>
    Stream.unwrap(Effect.gen(function*() {
      const { patience } = desk.keeper
      const wanted = wantedOf(filter)
      if (isEmpty(wanted)) return Stream.fail(nothing("The filter asks for nothing"))
      const inbox = new Inbox(options.bufferSize ?? bufferSize)
      const run: Run = { desk, wanted, inbox, timeout: options.timeout ?? patience.timeout }
      const policy = options.reconnect === undefined ? patience.backoff : Reconnect.resolve(options.reconnect)
      const following = follow(run, policy, (line) => line.modern ? listen(run, line) : watchers.watch(run, line))
      yield* Effect.forkScoped(
        Effect.catchCause(following, (cause) => Effect.sync(() => inbox.fail(cause))),
        { startImmediately: true }
      )
      return Stream.fromPull(Effect.succeed(inbox.batch))
    }))
  return { stream, hear: (notification) => watchers.hear(notification) }
}
