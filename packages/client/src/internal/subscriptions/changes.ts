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
import type { Desk } from "../calls/call.ts"
import { isEmpty, unsupported, wantedOf } from "./filter.ts"
import { follow, type Run } from "./follow.ts"
import { ChangeQueue } from "./queue.ts"
import { listen } from "./listen.ts"
import { SessionChanges } from "./sessionChanges.ts"

const streamOf = (run: Run, options: Options, watchers: SessionChanges): Stream.Stream<Change, ClientError> => {
  const { backoff } = run.desk.keeper.patience
  const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
  const following = follow(run, policy, (line) => line.modern ? listen(run, line) : watchers.watch(run, line))
  const started = Effect.forkScoped(
    Effect.catchCause(following, (cause) => Effect.sync(() => run.queue.fail(cause))),
    { startImmediately: true }
  )
  return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(run.queue.batch))))
}

/** See the module's text. */
export class Changes {
  readonly #bufferSize: number
  readonly #watchers: SessionChanges

  /** `bufferSize` is for runs that do not say. What is sent when runs are over lives in the scope. */
  constructor(bufferSize: number, scope: Scope.Scope) {
    this.#bufferSize = bufferSize
    this.#watchers = new SessionChanges(scope)
  }

  /** What changes on the server that a desk calls. */
  on(desk: Desk, filter: Filter, options: Options = {}): Stream.Stream<Change, ClientError> {
    return Stream.suspend(() => {
      const wanted = wantedOf(filter)
      if (isEmpty(wanted)) return Stream.fail(unsupported("The filter asks for nothing"))
      const queue = new ChangeQueue(options.maxBufferedChanges ?? this.#bufferSize)
      const timeout = options.timeout ?? desk.keeper.patience.timeout
      return streamOf({ desk, wanted, queue, timeout }, options, this.#watchers)
    })
  }

  /** Hears every notification of the server. */
  hear(notification: Notification): void {
    this.#watchers.onNotification(notification)
  }

  /** Hears that notifications may have been missed; with an error, that no more will come unasked on the line. */
  missed(error: TransportError | undefined): void {
    this.#watchers.onGap(error)
  }
}
