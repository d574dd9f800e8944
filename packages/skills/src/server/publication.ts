/**
 * Adds the skills of one layer to a server, and replaces them when they change.
 */
import * as SkillMessage from "../shared/SkillMessage.ts"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Catalog, updated } from "@skein/server/Catalog"
import { DefinitionError, DuplicateName } from "@skein/server/DefinitionError"
import * as Resource from "@skein/server/Resource"
import type { SkillError } from "./SkillError.ts"
import type { ServedFile, ServedSkill } from "./skillFiles.ts"
import { registryOf } from "./skillRegistry.ts"

/** A file, and how it is described as a resource. */
interface Wanted {
  readonly file: ServedFile
  readonly options: Resource.Options
  /** Differs if a part of the resource does. */
  readonly key: string
}

interface Added extends Wanted {
  readonly scope: Scope.Closeable
}

const wantedOf = (skills: ReadonlyArray<ServedSkill>): ReadonlyMap<string, Wanted> => {
  const wanted = new Map<string, Wanted>()
  const add = (file: ServedFile, options: Resource.Options) =>
    wanted.set(file.uri, { file, options, key: JSON.stringify([file.digest, options]) })
  for (const { files, frontmatter, hint } of skills) {
    // For a client without the extension, which sees the files as ordinary resources.
    const description = `A file of the skill ${frontmatter.name}`
    for (const file of files) {
      const { mimeType, name, size, uri } = file
      if (!wanted.has(uri)) add(file, { name, description, mimeType, size, ...hint })
    }
  }
  // A nested SKILL.md is described by its own skill.
  for (const { files, frontmatter: { description, name }, hint, uri } of skills) {
    const file = files.find((file) => file.uri === uri)!
    add(file, { name, description, mimeType: file.mimeType, size: file.size, ...hint })
  }
  return wanted
}

/** The skills of one layer. */
export class Publication {
  #added = new Map<string, Added>()
  readonly #catalog: Catalog["Service"]

  constructor(catalog: Catalog["Service"]) {
    this.#catalog = catalog
  }

  #add(wanted: Wanted): Effect.Effect<Added, DefinitionError> {
    const { file, options } = wanted
    return Effect.gen({ self: this }, function*() {
      const scope = yield* Scope.make()
      return yield* Resource.add(Resource.make(file.uri, options), Effect.succeed(file.body)).pipe(
        Scope.provide(scope),
        Effect.provideService(Catalog, this.#catalog),
        Effect.as({ ...wanted, scope }),
        Effect.onError(() => Scope.close(scope, Exit.void))
      )
    })
  }

  /**
   * Replaces the skills of this layer. On a failure those before stay. Clients are notified of changed lists and files.
   */
  set(skills: ReadonlyArray<ServedSkill>): Effect.Effect<void, DefinitionError | SkillError> {
    return Effect.uninterruptible(Effect.gen({ self: this }, function*() {
      const registry = yield* registryOf(this.#catalog)
      const problem = registry.check(this, skills.map(({ uri }) => SkillMessage.rootOf(uri)!))
      if (problem !== undefined) return yield* problem
      const duplicate = duplicateOf(skills)
      if (duplicate !== undefined) return yield* duplicate
      const wanted = wantedOf(skills)
      // The new files first: only they can fail, and nothing has changed then.
      const fresh: Array<Added> = []
      const addFresh = Effect.forEach(wanted, ([uri, each]) =>
        this.#added.has(uri)
          ? Effect.void
          : Effect.map(this.#add(each), (added) => void fresh.push(added)), { discard: true })
      yield* Effect.onError(addFresh, () => closeAll(fresh))
      const next = new Map(fresh.map((added) => [added.file.uri, added]))
      const changed: Array<string> = []
      for (const [uri, added] of this.#added) {
        const now = wanted.get(uri)
        if (now?.key === added.key) {
          next.set(uri, added)
          continue
        }
        yield* Scope.close(added.scope, Exit.void)
        if (now === undefined) continue
        changed.push(uri)
        next.set(uri, yield* this.#add(now))
      }
      this.#added = next
      registry.set(
        this,
        skills.map(({ files, frontmatter, hint, uri }) => ({
          skill: { uri, frontmatter, resources: files.map(({ digest, size, uri }) => ({ uri, digest, size })) },
          files: files.map(({ uri }) => uri),
          hint
        }))
      )
      yield* Effect.provideService(
        Effect.forEach(changed, (uri) => updated(uri), { discard: true }),
        Catalog,
        this.#catalog
      )
    }))
  }

  /** Removes the skills. */
  readonly clear: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    const registry = yield* registryOf(this.#catalog)
    registry.set(this, [])
    yield* closeAll([...this.#added.values()])
    this.#added.clear()
  })
}

const closeAll = (all: ReadonlyArray<Added>): Effect.Effect<void> =>
  Effect.forEach(all, ({ scope }) => Scope.close(scope, Exit.void), { discard: true })

const duplicateOf = (skills: ReadonlyArray<ServedSkill>): DefinitionError | undefined => {
  const seen = new Set<string>()
  for (const { uri } of skills) {
    if (seen.has(uri)) {
      const reason = new DuplicateName({ message: `Two skills have the URI ${quote(uri)}` })
      return new DefinitionError({ reason, kind: "resource", definition: uri })
    }
    seen.add(uri)
  }
  return undefined
}
