import { vi } from "vitest"

/** Waits until what is expected holds: for what two processes, or two sockets, do in an order of their own. */
export const eventually = <A>(expected: () => A | Promise<A>): Promise<A> =>
  vi.waitFor(expected, { interval: 10, timeout: 10_000 })
