import { vi } from "vitest"

/** Retries an expectation for up to a minute. For events whose order two processes or sockets do not guarantee. */
export const eventually = <A>(expected: () => A | Promise<A>): Promise<A> =>
  vi.waitFor(expected, { interval: 10, timeout: 60_000 })
