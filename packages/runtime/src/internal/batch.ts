import type * as JsonRpc from "@skein/protocol/JsonRpc"

/** The answers to one batch (2025-03-26): sent together when the last one is there, or not at all when none is owed. */
export class BatchReply {
  readonly #send: (replies: ReadonlyArray<JsonRpc.Success | JsonRpc.Failure>) => void
  readonly #replies: Array<JsonRpc.Success | JsonRpc.Failure> = []
  // One more than is owed until the batch was read to its end.
  #open = 1

  constructor(send: (replies: ReadonlyArray<JsonRpc.Success | JsonRpc.Failure>) => void) {
    this.#send = send
  }

  /** One more answer is owed. */
  expect(): this {
    this.#open++
    return this
  }

  add(reply: JsonRpc.Success | JsonRpc.Failure): void {
    this.#replies.push(reply)
    this.drop()
  }

  /** One answer less is owed. */
  drop(): void {
    if (--this.#open === 0 && this.#replies.length > 0) this.#send(this.#replies)
  }

  /** The batch was read to its end. */
  seal(): void {
    this.drop()
  }
}
