/**
 * The parts of a built server that each process of it has apart, for `skein inspect --fleet`. The parts that are reported
 * while the server is built (`ProcessLocal`) are not among them.
 */
import { quote } from "@skein/protocol/Text"
import type * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as Context from "effect/Context"
import type { Catalog } from "../../Catalog.ts"
import { RequestState } from "../../RequestState.ts"
import { internals } from "../catalog/catalogState.ts"
import { statesInMemory } from "../state/makeState.ts"
import { perSessionNames } from "../state/ownerOf.ts"

/** A part, and the environment variable that shares it. */
export interface LocalPart extends ProcessLocal.Part {
  readonly variable?: string
}

/** How many names a part has. */
const maxNames = 10

const list = (names: ReadonlyArray<string>): string => {
  const more = names.length - maxNames
  return names.slice(0, maxNames).map((name) => quote(name)).join(", ") + (more > 0 ? ` and ${more} more` : "")
}

const perSession = (): ReadonlyArray<LocalPart> =>
  perSessionNames.size === 0 ? [] : [{
    what: `the values of PerSession (${list([...perSessionNames])})`,
    remedy: "use State for data, and the option sessions: \"home\" for a browser or a child process"
  }]

const disabled = ({ prompts, resources, templates, tools }: Catalog["Service"]): ReadonlyArray<LocalPart> => {
  const names = [tools, resources, templates, prompts].flatMap(({ disabled }) => disabled)
  return names.length === 0 ? [] : [{
    what: `the definitions that are enabled at run time (${list(names)})`,
    remedy: "use Catalog.visibleTo, or enable them at each process"
  }]
}

const stateKeys = (catalog: Catalog["Service"]): ReadonlyArray<LocalPart> => {
  const { base, stateKeys } = catalog[internals]
  return Context.get(base, RequestState).keys !== undefined || stateKeys.ofEndpoint !== undefined ? [] : [{
    what: "the key that encrypts the state of questions to the client",
    remedy: "set SKEIN_STATE_KEYS, or the keys of RequestState.layer",
    variable: "SKEIN_STATE_KEYS"
  }]
}

/** Returns the parts. */
export const localParts = (catalog: Catalog["Service"]): ReadonlyArray<LocalPart> => [
  ...statesInMemory(catalog),
  ...perSession(),
  ...disabled(catalog),
  ...stateKeys(catalog)
]
