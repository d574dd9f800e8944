/**
 * What changes on a server, as streams.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { TransportError } from "@skein/runtime/Connection"
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
  /** What changes on the server that a desk calls. */
  readonly on: (desk: Desk) => (filter: Filter, options?: Options) => Stream.Stream<Change, ClientError>
  /** Hears every notification of the server. */
  readonly hear: (notification: Notification) => void
  /** Hears that notifications may have been missed; with an error, that no more will come unasked on the line. */
  readonly missed: (error: TransportError | undefined) => void
}

const streamOf = (run: Run, options: Options, watchers: Watchers): Stream.Stream<Change, ClientError> => {
  const { backoff } = run.desk.keeper.patience
  const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
  const following = follow(run, policy, (line) => line.modern ? listen(run, line) : watchers.watch(run, line))
  const started = Effect.forkScoped(
    Effect.catchCause(following, (cause) => Effect.sync(() => run.inbox.fail(cause))),
    { startImmediately: true }
  )
  return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(run.inbox.batch))))
}

/** `bufferSize` is for runs that do not say. What is sent when runs are over lives in the scope. */
export const make = (bufferSize: number, scope: Scope.Scope): Changes => {
  const watchers = new Watchers(scope)
  return {
    on: (desk) => (filter, options = {}) =>
      Stream.suspend(() => {
        const wanted = wantedOf(filter)
        if (isEmpty(wanted)) return Stream.fail(nothing("The filter asks for nothing"))
        const inbox = new Inbox(options.bufferSize ?? bufferSize)
        return streamOf(
          { desk, wanted, inbox, timeout: options.timeout ?? desk.keeper.patience.timeout },
          options,
          watchers
        )
      }),
    hear: (notification) => watchers.hear(notification),
    missed: (error) => watchers.missed(error)
  }
}
