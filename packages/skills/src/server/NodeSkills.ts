/**
 * The skills in a folder of the file system, on Node. `Skill` says what skills are.
 *
 * Each folder with a `SKILL.md` is a skill, at any depth: `skills/acme/refunds/SKILL.md` is
 * `skill://acme/refunds/SKILL.md`. All files below it belong to it. Files outside of skills are not served, nor are files
 * and folders whose names begin with a dot, such as `.env` and `.git`. More than 10,000 files and folders, those outside of
 * skills included, fail the layer with `LimitExceeded`.
 *
 * A skill that cannot be served is left out with a warning that says what to do, and the others are served. The imperfections
 * of a `SKILL.md` that other agents accept are repaired, and logged: the guide has a table of them. `list` returns the skills
 * that are left out and the repairs. With `rejectImperfect` the first of either fails the layer.
 *
 * The content is read when the layer is built, and kept in memory, so that the listed digests are always those of the
 * served files. With `watchInterval` the folder is read again after a change.
 *
 * @example
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, NodeSkills.layer("skills", { watchInterval: "1 second" }))
 */
import { quote } from "@skein/protocol/Text"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { fileURLToPath } from "node:url"
import { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import { prepare, type PreparedFolder } from "./imperfectSkills.ts"
import { type FolderState, type LeftOut, read, walk } from "./nodeFolder.ts"
import { Publication } from "./publication.ts"
import { invalidSkill } from "./skillFiles.ts"
import { skillBounds } from "../shared/skillBounds.ts"
import type * as Skill from "./Skill.ts"
import type { SkillError } from "./SkillError.ts"

/** The bounds of a folder. */
export interface Limits extends Skill.Limits {
  /**
   * How many bytes all skills together have at most: 64 MiB by default. More bytes fail the layer with `LimitExceeded`.
   * Raise it for a large library of skills: they are kept in memory.
   */
  readonly maxTotalBytes?: number | undefined
}

/** The options of a folder. */
export interface Options extends Skill.Placement {
  /**
   * How often the folder is checked for changes: never by default. Changed skills replace those before, and clients are
   * notified of changed resources. A folder that can no longer be read is
   * logged, and the skills before stay.
   */
  readonly watchInterval?: Duration.Input | undefined
  /**
   * Selects files and folders by their path within the folder, with slashes: all by default. A folder that is left out
   * is not read.
   *
   * @example
   * include: (path) => !path.endsWith(".test.py")
   */
  readonly include?: ((path: string) => boolean) | undefined
  /**
   * Whether a skill that would be repaired or left out fails the layer instead: false by default. Use it for skills of your
   * own, in a test for instance. `InvalidSkill` is the reason for a repair.
   */
  readonly rejectImperfect?: boolean | undefined
  /** The bounds of a skill, and of all of them together. */
  readonly limits?: Limits | undefined
}

export type { LeftOut }

/** A skill of a folder. */
export interface Listed {
  /** The path of its folder within the folder of skills. */
  readonly path: string
  readonly uri: string
  readonly name: string
  readonly description: string
  /** One line for each repair of its `SKILL.md`. Empty for a skill that is served as it is. */
  readonly changes: ReadonlyArray<string>
}

/** The skills of a folder. */
export interface Listing {
  readonly skills: ReadonlyArray<Listed>
  /** The skills and symbolic links that are not served, with their errors. */
  readonly leftOut: ReadonlyArray<LeftOut>
}

const settingsOf = (folder: string | URL, options: Options) => {
  const { cacheScope, include = () => true, limits = {}, prefix, ttlMs } = options
  const { maxTotalBytes = 64 * 1024 * 1024 } = limits
  return {
    path: folder instanceof URL ? fileURLToPath(folder) : folder,
    walking: { include, maxTotalBytes },
    preparing: { prefix, bounds: skillBounds(limits), hint: { ttlMs, cacheScope } }
  }
}

/**
 * Lists the skills in a folder as `layer` serves them, and those that it leaves out. It never fails for a single skill. Fails
 * with `SkillError`: `FolderUnreadable` or `LimitExceeded`.
 *
 * @example
 * const { leftOut, skills } = yield* NodeSkills.list("skills")
 */
export const list = (
  folder: string | URL,
  options: Omit<Options, "watchInterval" | "rejectImperfect"> = {}
): Effect.Effect<Listing, SkillError> => {
  const { path, preparing, walking } = settingsOf(folder, options)
  return Effect.gen(function*() {
    const { leftOut, skills } = yield* prepare(yield* read(path, yield* walk(path, walking), walking), preparing)
    return {
      skills: skills.map(({ changes, path, skill: { frontmatter: { description, name }, uri } }) => ({
        ...{ path, uri, name, description, changes }
      })),
      leftOut
    }
  })
}

/** The first imperfection of a folder, as an error. */
const imperfectionOf = ({ leftOut, skills }: PreparedFolder): SkillError | undefined => {
  if (leftOut[0] !== undefined) return leftOut[0].error
  const changed = skills.find(({ changes }) => changes.length > 0)
  return changed && invalidSkill(changed.path, changed.changes.join("; "))
}

/**
 * Serves the skills in a folder. Fails with
 * - `SkillError`: `FolderUnreadable`, `LimitExceeded` if the whole folder exceeds a bound, or `SeparatelyNested` if a skill is
 *   inside of one that another layer serves; with `rejectImperfect` also `InvalidSkill`, `InvalidPath`, `LimitExceeded` and
 *   `OutsideFolder` for a part of it;
 * - `DefinitionError`: `DuplicateName` if a URI exists already.
 *
 * @example
 * NodeSkills.layer(new URL("./skills", import.meta.url), { prefix: "acme" })
 */
export const layer = (
  folder: string | URL,
  options: Options = {}
): Layer.Layer<never, SkillError | DefinitionError, Catalog> => {
  const { rejectImperfect = false, watchInterval } = options
  const { path, preparing, walking } = settingsOf(folder, options)
  return Layer.effectDiscard(Effect.gen(function*() {
    const publication = new Publication(yield* Catalog)
    /** The imperfections of the present skills, which are logged once. */
    let known: ReadonlySet<string> = new Set()
    const report = ({ leftOut, skills }: PreparedFolder) =>
      Effect.suspend(() => {
        const warnings = leftOut.map(({ error, path }) => `${quote(path)} was left out of the skills: ${error.message}`)
        const repairs = skills.flatMap(({ changes, path }) =>
          changes.map((change) => `the skill ${quote(path)} was changed: ${change}`)
        )
        const before = known
        known = new Set([...warnings, ...repairs])
        const isNew = (line: string) => !before.has(line)
        return Effect.andThen(
          Effect.forEach(warnings.filter(isNew), (line) => Effect.logWarning(line), { discard: true }),
          Effect.forEach(repairs.filter(isNew), (line) => Effect.logInfo(line), { discard: true })
        )
      })
    const publish = Effect.fnUntraced(function*(state: FolderState) {
      const prepared = yield* prepare(yield* read(path, state, walking), preparing)
      const imperfection = rejectImperfect ? imperfectionOf(prepared) : undefined
      if (imperfection !== undefined) return yield* imperfection
      yield* publication.set(prepared.skills.map(({ skill }) => skill))
      yield* report(prepared)
    })
    yield* Effect.addFinalizer(() => publication.clear)
    const first = yield* walk(path, walking)
    yield* publish(first)
    if (watchInterval === undefined) return
    let seen = first.fingerprint
    let warned = ""
    const check = Effect.gen(function*() {
      const state = yield* walk(path, walking)
      if (state.fingerprint === seen) return
      yield* publish(state)
      seen = state.fingerprint
      warned = ""
      yield* Effect.logInfo(`the skills in ${path} were read again`)
    })
    const watching = Effect.catch(check, ({ message }) =>
      Effect.suspend(() => {
        if (message === warned) return Effect.void
        warned = message
        return Effect.logWarning(`the skills in ${path} were not read again: ${message}`)
      }))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(watching, watchInterval)))
  }))
}
