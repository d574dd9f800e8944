/**
 * Skills: instructions for a model with the files that they need, which a client lists, loads and verifies. This is the
 * extension `io.modelcontextprotocol/skills` (SEP-2640), in every revision.
 *
 * A skill is a folder with a `SKILL.md`: YAML frontmatter with a `name` and a `description`, then instructions. The
 * server lists skills (`skills/list`, `skills/get`) with the digest and the size of each file, serves the files as
 * resources, and lists folders (`resources/directory/read`). `NodeSkills.layer` serves the skills of a folder on disk.
 *
 * The layers of this module are definitions among the others of a server. `Catalog.visibleTo`, `Catalog.guarded` and
 * `Catalog.disabled` apply to the resources of a skill, and to its entry as well.
 *
 * @example
 * const refunds = Skill.make({
 *   name: "refunds",
 *   description: "Refunds an order. Use it when a customer asks for money back.",
 *   instructions: "Find the order first. Then follow references/limits.md.",
 *   files: { "references/limits.md": "Above 500 EUR a manager must agree.\n" }
 * })
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, Skill.layer(refunds))
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as SkillMessage from "../shared/SkillMessage.ts"
import { type Limits, skillBounds } from "../shared/skillBounds.ts"
import * as SkillMarkdown from "../shared/SkillMarkdown.ts"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { Hint } from "@skein/server/Caching"
import { Catalog, type HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import { Publication } from "./publication.ts"
import { fileUri, invalidSkill, mediaTypeOf, rootUri, serve } from "./skillFiles.ts"
import { registryOf } from "./skillRegistry.ts"
import * as Resource from "@skein/server/Resource"
import type { SkillError } from "./SkillError.ts"

export type { Limits }

/** The members that skills have however their content is given. */
export interface Placement extends Hint {
  /**
   * A path before the name in the URIs: none by default. With `acme/billing`, the skill `refunds` is
   * `skill://acme/billing/refunds/SKILL.md`.
   */
  readonly prefix?: string | undefined
}

/** The description of a skill: the frontmatter of its `SKILL.md`. */
export interface Description extends Placement {
  /** 1 to 64 lowercase letters of ASCII, digits and single hyphens between them. */
  readonly name: string
  /** The purpose of the skill, and when to use it: 1 to 1024 characters. A model chooses skills by it. */
  readonly description: string
  /** The name of a license, or of a file with its text. */
  readonly license?: string | undefined
  /** The requirements of the skill: programs, network access. 1 to 500 characters. */
  readonly compatibility?: string | undefined
  /** Further members of the frontmatter: values of JSON. `metadata` maps texts to texts. */
  readonly frontmatter?: JsonObject | undefined
}

/** A skill whose `SKILL.md` is made of a description and instructions. */
export interface Options extends Description {
  /** The instructions, in Markdown. */
  readonly instructions: string
  /** The other files, by their path within the skill. */
  readonly files?: { readonly [path: string]: string | Uint8Array } | undefined
}

/** A skill with its files. */
export interface Skill extends Placement {
  /** The whole text of `SKILL.md`. */
  readonly markdown: string
  /** The name in the frontmatter, as far as it can be read. */
  readonly name: string
  readonly files: { readonly [path: string]: string | Uint8Array }
}

const frontmatterOf = ({ compatibility, description, frontmatter, license, name }: Description): JsonObject => ({
  name,
  description,
  license,
  compatibility,
  ...frontmatter
})

/**
 * Makes a skill from its description and its instructions. The layer checks it.
 *
 * @example
 * Skill.make({ name: "greet", description: "Greets people", instructions: "Say hello in their language." })
 */
export const make = (options: Options): Skill => {
  const { cacheScope, files = {}, instructions, name, prefix, ttlMs } = options
  return {
    markdown: SkillMarkdown.write(frontmatterOf(options), instructions),
    name,
    files,
    prefix,
    ttlMs,
    cacheScope
  }
}

/**
 * Makes a skill from the text of its `SKILL.md`, which clients receive unchanged. Fails with `SkillError`
 * `InvalidSkill` if the frontmatter is invalid.
 *
 * @example
 * const refunds = Result.getOrThrow(Skill.fromMarkdown(text, { prefix: "acme/billing" }))
 */
export const fromMarkdown = (
  markdown: string,
  options: Placement & Pick<Options, "files"> = {}
): Result.Result<Skill, SkillError> => {
  const { cacheScope, files = {}, prefix, ttlMs } = options
  return Result.mapBoth(SkillMarkdown.parse(markdown), {
    onSuccess: ({ frontmatter: { name } }) => ({ markdown, name, files, prefix, ttlMs, cacheScope }),
    onFailure: (problem) => invalidSkill(SkillMessage.fileName, problem)
  })
}

const pathOf = (prefix: string | undefined, name: string): string => prefix === undefined ? name : `${prefix}/${name}`

const utf8 = /* @__PURE__ */ new TextEncoder()

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? utf8.encode(content) : content

/**
 * Serves skills. Skills that contain each other must be given to one call. Fails with
 * - `SkillError`: `InvalidSkill`, `InvalidPath`, `LimitExceeded`, or `SeparatelyNested` if a skill is inside of one that
 *   another layer serves;
 * - `DefinitionError`: `DuplicateName` if a URI exists already.
 *
 * @example
 * Skill.layer([refunds, invoices], { limits: { maxBytes: 1024 * 1024 } })
 */
export const layer = (
  skills: Skill | ReadonlyArray<Skill>,
  options: { readonly limits?: Limits | undefined } = {}
): Layer.Layer<never, SkillError | DefinitionError, Catalog> => {
  const bounds = skillBounds(options.limits)
  const all = Array.isArray(skills) ? skills as ReadonlyArray<Skill> : [skills as Skill]
  return Layer.effectDiscard(Effect.gen(function*() {
    const served = yield* Effect.forEach(all, ({ cacheScope, files, markdown, name, prefix, ttlMs }) => {
      const contents = Object.entries(files).map(([path, content]) => [path, bytesOf(content)] as const)
      const content = {
        path: pathOf(prefix, name),
        files: new Map([...contents, [SkillMessage.fileName, utf8.encode(markdown)]])
      }
      return serve(content, bounds, { ttlMs, cacheScope })
    })
    const publication = new Publication(yield* Catalog)
    yield* Effect.acquireRelease(publication.set(served), () => publication.clear)
  }))
}

/** A skill whose content is made for each request. */
export interface DynamicOptions<E, R> extends Description {
  /** The instructions, in Markdown. They run each time that `SKILL.md` is read. */
  readonly instructions: Effect.Effect<string, E, R>
  /** The other files, by their path within the skill. */
  readonly files?: { readonly [path: string]: Effect.Effect<string | Uint8Array, E, R> } | undefined
}

/**
 * Serves a skill whose content is made for each request, so that it has no digests (`resources: "dynamic"`). Hosts
 * cannot verify such a skill, and some refuse it: prefer `layer` where the content is stable.
 *
 * Fails with `SkillError`: `InvalidSkill`, `InvalidPath`, `SeparatelyNested`, and with `DefinitionError` as
 * `Resource.layer` does. A failure of an effect reaches the client as that of the reader of a resource.
 *
 * @example
 * Skill.dynamic({ name: "daily", description: "Reports the day", instructions: Effect.map(orders, summarize) })
 */
export const dynamic = <E extends HandlerError = never, R = never>(
  options: DynamicOptions<E, R>
): Layer.Layer<never, SkillError | DefinitionError, Catalog | HandlerServices<R>> => {
  const { cacheScope, description, files = {}, instructions, name, prefix, ttlMs } = options
  const hint = { ttlMs, cacheScope }
  const path = pathOf(prefix, name)
  return Layer.effectDiscard(Effect.gen(function*() {
    const root = yield* Effect.fromResult(rootUri(path))
    const { frontmatter } = yield* Effect.fromResult(Result.mapError(
      SkillMarkdown.parse(SkillMarkdown.write(frontmatterOf(options), "")),
      (problem) => invalidSkill(path, problem)
    ))
    const problem = SkillMarkdown.formatProblem(frontmatter)
    if (problem !== undefined) return yield* invalidSkill(path, problem)
    const uri = `${root}/${SkillMessage.fileName}`
    const markdown = Resource.make(uri, { name, description, mimeType: "text/markdown", ...hint })
    const others: Array<readonly [Resource.Resource, Effect.Effect<string | Uint8Array, E, R>]> = []
    for (const [file, content] of Object.entries(files)) {
      const last = file.split("/").at(-1)!
      const described = { name: last, description: `A file of the skill ${name}`, mimeType: mediaTypeOf(last, true) }
      const uri = yield* Effect.fromResult(fileUri(root, file))
      others.push([Resource.make(uri, { ...described, ...hint }), content])
    }
    const entry = {
      skill: { uri, frontmatter, resources: "dynamic" as const },
      files: [uri, ...others.map(([resource]) => resource.uri)],
      hint
    }
    const registry = yield* Effect.flatMap(Catalog, registryOf)
    const owner = {}
    yield* Effect.acquireRelease(
      Effect.suspend(() => registry.check(owner, [root]) ?? Effect.sync(() => registry.set(owner, [entry]))),
      () => Effect.sync(() => registry.set(owner, []))
    )
    yield* Resource.add(markdown, Effect.map(instructions, (text) => SkillMarkdown.write(frontmatter, text)))
    for (const [resource, content] of others) yield* Resource.add(resource, content)
  }))
}
