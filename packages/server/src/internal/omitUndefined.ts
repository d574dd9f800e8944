/**
 * Options may be given as `undefined`; members of protocol messages may not.
 */

/** `A` with the optional members that may be `undefined` narrowed to members that are absent or have a value. */
export type Defined<A> = { readonly [K in keyof A]: Exclude<A[K], undefined> }

/** A copy without the members that are `undefined`. */
export const omitUndefined = <A extends object>(value: A): Defined<A> => {
  const defined: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) defined[name] = member
  }
  return defined as Defined<A>
}
