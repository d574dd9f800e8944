/**
 * State of users and sessions, and values that live as long as a session.
 */
declare const valueOf: unique symbol

/** A state: made by `state`, and read and changed with `state` of a handler's context. */
export interface State<in out A> {
  readonly name: string
  readonly [valueOf]: (value: A) => A
}

/** The operations of a state in a handler. They reject with `StateError`. */
export interface StateOperations<A> {
  /** Returns the value of the owner, or the initial one. */
  readonly get: () => Promise<A>
  /** Writes a value. */
  readonly set: (value: A) => Promise<void>
  /**
   * Changes the value in one step, and returns the new one. The function may run several times, so it must have no effects. It
   * rejects with `Conflict` after 100 attempts.
   */
  readonly update: (change: (value: A) => A) => Promise<A>
  /** Removes the value, so that the state has the initial one again. */
  readonly remove: () => Promise<void>
}

/** A value of each session: made by `perSession`, and acquired with `use` of a handler's context. */
export interface PerSession<out A> {
  readonly name: string
  readonly [valueOf]: () => A
}
