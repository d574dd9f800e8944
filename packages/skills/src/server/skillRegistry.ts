/**
 * The skills of a server, and the methods of the skills extension (SEP-2640).
 *
 * A server has one registry, whichever layers add skills to it. A caller sees a skill if it sees the resource of its
 * `SKILL.md`: `Catalog.visibleTo`, `Catalog.guarded` and `Catalog.disable` apply to resources, and so to skills.
 */
import * as Cursor from "@skein/protocol/Cursor"
import * as McpError from "@skein/protocol/McpError"
import type * as WireResource from "@skein/protocol/Resource"
import * as SkillMessage from "../shared/SkillMessage.ts"
import { quote } from "@skein/protocol/Text"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Caching from "@skein/server/Caching"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import { SeparatelyNested, SkillError } from "./SkillError.ts"

type Service = Catalog.Catalog["Service"]

/** A skill in the list of a server. */
export interface SkillEntry {
  readonly skill: SkillMessage.Skill
  /** The URIs of its files. */
  readonly files: ReadonlyArray<string>
  readonly hint: Caching.Hint
}

/** A folder: its children by name. A child is a file, or a folder. */
interface Directory {
  readonly uri: string
  readonly children: Map<string, string | Directory>
}

const slash = (root: string): string => `${root}/`

const rootUriOf = ({ skill }: SkillEntry): string => SkillMessage.rootOf(skill.uri)!

/** The skills of one server. */
export class SkillRegistry {
  readonly #catalog: Service
  /** The skills that were added together, by the owner of the group. */
  readonly #groups = new Map<object, ReadonlyArray<SkillEntry>>()
  #sorted: ReadonlyArray<readonly [string, SkillEntry]> = []
  #directories: ReadonlyMap<string, Directory> | undefined = undefined
  // "If the first page has cacheScope private, all subsequent pages MUST also be private" (2026-07-28, caching).
  #isPrivate = false

  constructor(catalog: Service) {
    this.#catalog = catalog
  }

  /**
   * Checks that no skill is inside the folder of a skill of another group, and that none has the URI of one.
   */
  check(owner: object, roots: ReadonlyArray<string>): SkillError | undefined {
    const others = [...this.#groups].flatMap(([group, entries]) => group === owner ? [] : entries.map(rootUriOf))
    for (const root of roots) {
      for (const other of others) {
        const inner = root.startsWith(slash(other)) ? root : other.startsWith(slash(root)) ? other : undefined
        if (inner === undefined) continue
        const uri = `${inner}/${SkillMessage.fileName}`
        const outer = `${inner === root ? other : root}/${SkillMessage.fileName}`
        const message = `The skill ${quote(uri)} is inside the folder of ${quote(outer)}: add both with one call`
        return new SkillError({ reason: new SeparatelyNested({ message, uri }) })
      }
    }
    return undefined
  }

  /** Sets the skills of a group. */
  set(owner: object, entries: ReadonlyArray<SkillEntry>): void {
    if (entries.length === 0) this.#groups.delete(owner)
    else this.#groups.set(owner, entries)
    this.#sorted = [...this.#groups.values()].flat()
      .map((entry) => [entry.skill.uri, entry] as const)
      .sort(([a], [b]) => a < b ? -1 : 1)
    this.#directories = undefined
  }

  #sees(uri: string, caller: Caller): boolean {
    return this.#catalog.resources.seen(uri, caller) !== undefined
  }

  #isSelective(uri: string): boolean {
    return this.#catalog.resources.get(uri)?.visible !== undefined
  }

  /** Answers `skills/list`. */
  list(cursor: string | undefined, caller: Caller, pageSize: number): Catalog.Handled<SkillMessage.ListSkillsResult> {
    this.#isPrivate ||= this.#sorted.some(([uri]) => this.#isSelective(uri))
    const page = pageOf("skills", cursor, this.#sorted, pageSize, ([uri]) => this.#sees(uri, caller))
    return Effect.map(page, ({ items, ...nextCursor }) => ({
      skills: items.map(([, { skill }]) => skill),
      ...nextCursor,
      ...this.#isPrivate ? { cacheScope: "private" as const } : undefined
    }))
  }

  /** Answers `skills/get`. */
  get(uri: string, caller: Caller): Catalog.Handled<SkillMessage.GetSkillResult> {
    const found = this.#sorted.find(([key]) => key === uri)?.[1]
    const resource = found === undefined ? undefined : this.#catalog.resources.seen(uri, caller)
    if (found === undefined || resource === undefined) {
      return Effect.fail(McpError.invalidParams(`No skill has the URI ${quote(uri)}`))
    }
    const refused = resource.guard?.(caller)
    return refused === undefined
      ? Effect.succeed({
        skill: found.skill,
        ...Caching.toWire(found.hint),
        ...resource.visible === undefined && resource.guard === undefined
          ? undefined
          : { cacheScope: "private" as const }
      })
      : Effect.fail(refused)
  }

  get #tree(): ReadonlyMap<string, Directory> {
    if (this.#directories !== undefined) return this.#directories
    const directories = new Map<string, Directory>()
    const directory = (uri: string): Directory => {
      const known = directories.get(uri)
      if (known !== undefined) return known
      const made: Directory = { uri, children: new Map() }
      directories.set(uri, made)
      const at = uri.lastIndexOf("/")
      if (!uri.slice(0, at).endsWith("/")) directory(uri.slice(0, at)).children.set(uri.slice(at + 1), made)
      return made
    }
    for (const [, { files }] of this.#sorted) {
      for (const file of files) {
        const at = file.lastIndexOf("/")
        directory(file.slice(0, at)).children.set(file.slice(at + 1), file)
      }
    }
    return this.#directories = directories
  }

  #seesChild(child: string | Directory, caller: Caller): boolean {
    return typeof child === "string"
      ? this.#sees(child, caller)
      : [...child.children.values()].some((inner) => this.#seesChild(inner, caller))
  }

  /** Answers `resources/directory/read`. */
  readDirectory(
    uri: string,
    cursor: string | undefined,
    caller: Caller,
    pageSize: number
  ): Catalog.Handled<SkillMessage.ReadDirectoryResult> {
    const found = this.#tree.get(uri)
    if (found === undefined || !this.#seesChild(found, caller)) {
      const isFile = this.#sees(uri, caller)
      return Effect.fail(
        McpError.invalidParams(isFile ? `${quote(uri)} is not a directory` : `No directory has the URI ${quote(uri)}`)
      )
    }
    const children = [...found.children].sort(([a], [b]) => a < b ? -1 : 1)
    const page = pageOf(uri, cursor, children, pageSize, ([, child]) => this.#seesChild(child, caller))
    const described = ([name, child]: readonly [string, string | Directory]): WireResource.Resource =>
      typeof child === "string"
        ? this.#catalog.resources.seen(child, caller)!.definition
        : { uri: child.uri, name: decoded(name), mimeType: SkillMessage.directoryType }
    return Effect.map(page, ({ items, ...nextCursor }) => ({ resources: items.map(described), ...nextCursor }))
  }
}

// The segments of served URIs were encoded by `SkillMessage.encodePath`.
const decoded = (segment: string): string => decodeURIComponent(segment)

type Named<A> = readonly [name: string, value: A]

/** Up to `pageSize` visible entries after that of the cursor, and the cursor of the next page if there are more. */
const pageOf = Effect.fnUntraced(function*<A>(
  list: string,
  cursor: string | undefined,
  sorted: ReadonlyArray<Named<A>>,
  pageSize: number,
  isVisible: (entry: Named<A>) => boolean
): Effect.fn.Return<{ readonly items: ReadonlyArray<Named<A>>; readonly nextCursor?: string }, McpError.McpError> {
  const last = cursor === undefined ? undefined : yield* Effect.fromResult(Cursor.decode(list, cursor))
  const items: Array<Named<A>> = []
  for (let at = last === undefined ? 0 : Cursor.resume(sorted, ([name]) => name, last); at < sorted.length; at++) {
    const entry = sorted[at]!
    if (!isVisible(entry)) continue
    if (items.length === pageSize) return { items, nextCursor: Cursor.encode(list, items.at(-1)![0]) }
    items.push(entry)
  }
  return { items }
})

/** The registries by server, which its services identify. */
const registries = new WeakMap<object, SkillRegistry>()

/** Returns the registry of a server. The first call adds the extension to the server, for as long as it lives. */
export const registryOf = (catalog: Service): Effect.Effect<SkillRegistry> =>
  Effect.suspend(() => {
    const key = Catalog.requestServices(catalog)
    const known = registries.get(key)
    if (known !== undefined) return Effect.succeed(known)
    const registry = new SkillRegistry(catalog)
    registries.set(key, registry)
    return Catalog.persistent(Extension.add(extensionOf(registry))).pipe(
      Effect.provideService(Catalog.Catalog, catalog),
      Effect.as(registry)
    )
  })

const extensionOf = (registry: SkillRegistry): Extension.Extension => ({
  name: SkillMessage.extension,
  // "A server declaring this extension MUST also declare the resources capability" (SEP-2640, capability negotiation).
  lists: ["resources"],
  capabilities: () => ({ extensions: { [SkillMessage.extension]: { directoryRead: true } } }),
  methods: [
    Extension.method(
      SkillMessage.ListSkills,
      ({ cursor }, { caller }, { pageSize }) => registry.list(cursor, caller, pageSize)
    ),
    Extension.method(SkillMessage.GetSkill, ({ uri }, { caller }) => registry.get(uri, caller)),
    Extension.method(
      SkillMessage.ReadDirectory,
      ({ cursor, uri }, { caller }, { pageSize }) => registry.readDirectory(uri, cursor, caller, pageSize)
    )
  ]
})
