/**
 * Loads `oidc-provider`, an optional peer dependency. It is loaded when a server starts, not when a module is imported.
 */
import type { errors, interactionPolicy, Provider } from "oidc-provider"

/** The exports of `oidc-provider` that this package uses. */
export interface Library {
  readonly Provider: typeof Provider
  readonly errors: typeof errors
  readonly interactionPolicy: typeof interactionPolicy
}

/** The library, and what it wrote to the console while it was loaded. */
export interface Loaded {
  readonly library: Library
  readonly notices: ReadonlyArray<string>
}

const loading: { promise: Promise<Loaded> | undefined } = { promise: undefined }

const load = async (): Promise<Loaded> => {
  // The library writes notices about the version of Node to the console of the program, on import. Everything else
  // that the program writes meanwhile passes.
  const { console } = globalThis
  const notices: Array<string> = []
  const original = { warn: console.warn, info: console.info }
  const filtered = (write: (...args: Array<unknown>) => void) => (...args: Array<unknown>) => {
    if (typeof args[0] === "string" && args[0].includes("oidc-provider ")) notices.push(args[0])
    else write.apply(console, args)
  }
  const replaced = { warn: filtered(original.warn), info: filtered(original.info) }
  Object.assign(console, replaced)
  try {
    return { library: await import("oidc-provider"), notices }
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND"
    const message = missing ? "the package oidc-provider is missing: npm install oidc-provider" : String(cause)
    throw new Error(message, { cause })
  } finally {
    for (const name of ["warn", "info"] as const) {
      if (console[name] === replaced[name]) console[name] = original[name]
    }
  }
}

/** Loads the library once. Fails with an `Error` whose message says what to install if it is missing. */
export const loadLibrary = (): Promise<Loaded> => {
  loading.promise ??= load()
  return loading.promise
}
