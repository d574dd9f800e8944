import type { Invocation } from "../src/internal/calls/call.ts"

/** A call of the tool `t`, with these options. */
export const invocationOf = (options: Partial<Invocation> = {}): Invocation => ({
  target: { _tag: "Url", url: new URL("http://x") },
  tool: "t",
  args: {},
  headers: {},
  env: {},
  inputs: {},
  timeout: undefined,
  leave: false,
  resume: undefined,
  verbose: false,
  json: false,
  signIn: undefined,
  ...options
})
