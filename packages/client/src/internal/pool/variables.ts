/**
 * The variables in the strings of a configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`.
 */

/** The values of variables. */
export interface Expansion {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The values of inputs by id. */
  readonly inputs: ReadonlyMap<string, string | undefined>
  /** The predefined variables: `workspaceFolder`, for example. They have precedence over the environment. */
  readonly named: Readonly<Record<string, string | undefined>>
}

/** A variable that could not be expanded. */
export interface Unexpanded {
  /** The part before the colon: `env` or `input`, or a kind that is not supported. */
  readonly kind: string | undefined
  readonly name: string
}

// An optional kind, a name, and an optional default, which may contain variables without defaults. A default ends at the
// next brace that does not belong to a variable, so that the search takes linear time.
const pattern = /\$\{(?:([A-Za-z]\w*):(?!-))?([^{}:]*)(?::-((?:[^{}$]|\$(?!\{)|\$\{[^{}]*\})*))?\}/g

const valueOf = (kind: string | undefined, name: string, { env, inputs, named }: Expansion): string | undefined => {
  if (kind === "input") return inputs.get(name)
  if (kind !== undefined && kind !== "env") return undefined
  if (kind === undefined && Object.hasOwn(named, name)) return named[name]
  return Object.hasOwn(env, name) ? env[name] : undefined
}

/** Expands the variables of a text. The values are not expanded again. */
export const expandIn = (text: string, expansion: Expansion): string | Unexpanded => {
  let failed: Unexpanded | undefined
  const expanded = text.replaceAll(
    pattern,
    (whole: string, kind: string | undefined, name: string, fallback?: string) => {
      const value = valueOf(kind, name, expansion)
      if (value !== undefined && (value !== "" || fallback === undefined)) return value
      if (fallback === undefined) {
        failed ??= { kind, name }
        return whole
      }
      const inner = expandIn(fallback, expansion)
      if (typeof inner === "string") return inner
      failed ??= inner
      return whole
    }
  )
  return failed ?? expanded
}
