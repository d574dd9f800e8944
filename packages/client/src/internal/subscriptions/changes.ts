/**
 * What changes on a server, as streams.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { ClientContext } from "../calls/context.ts"
import { isEmpty, nothing, wantedOf } from "./filter.ts"
import { follow } from "./follow.ts"
import { Inbox } from "./queue.ts"
import { listen } from "./listen.ts"
import type { Run } from "./turn.ts"
import { Watchers } from "./watch.ts"

const streamOf = (run: Run, options: Options, watchers: Watchers): Stream.Stream<Change, ClientError> => {
  const { backoff } = run.client.supervisor.timeouts
  const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
  const following = follow(
    run,
    policy,
    (connection) => connection.isRequestEra ? listen(run, connection) : watchers.watch(run, connection)
  )
  const started = Effect.forkScoped(
    Effect.catchCause(following, (cause) => Effect.sync(() => run.inbox.fail(cause))),
    { startImmediately: true }
  )
  return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(run.inbox.batch))))
}

/** See the module's text. */
export class Changes {
  readonly #bufferSize: number
  readonly #watchers: Watchers

  /** `bufferSize` is for runs that do not say. What is sent when runs are over lives in the scope. */
  constructor(bufferSize: number, scope: Scope.Scope) {
    this.#bufferSize = bufferSize
    this.#watchers = new Watchers(scope)
  }

  /** What changes on the server that a desk calls. */
  on(client: ClientContext, filter: Filter, options: Options = {}): Stream.Stream<Change, ClientError> {
    return Stream.suspend(() => {
      const wanted = wantedOf(filter)
      if (isEmpty(wanted)) return Stream.fail(nothing("The filter asks for nothing"))
      const inbox = new Inbox(options.maxBufferedChanges ?? this.#bufferSize)
      const timeout = options.timeout ?? client.supervisor.timeouts.timeout
      return streamOf({ client, wanted, inbox, timeout }, options, this.#watchers)
    })
  }

  /** Hears every notification of the server. */
  hear(notification: Notification): void {
    this.#watchers.hear(notification)
  }

  /** Hears that notifications may have been missed; with an error, that no more will come unasked on the line. */
  missed(error: TransportError | undefined): void {
    this.#watchers.missed(error)
  }
}
