/**
 * Compares the names of members in the model with those in the official schemas. Generated values cannot show a
 * difference: an optional member with a wrong name, or in a wrong revision, is an unknown member, which the official
 * schemas allow.
 */
import * as Annotate from "@skein/protocol/Annotate"
import * as Definitions from "./Definitions.ts"
import * as Revision from "@skein/protocol/Revision"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { expect, it } from "vitest"
import * as Spec from "./Spec.ts"

/** The members by name and the items that are allowed at one path, and whether members of any name are. */
interface Place<N> {
  readonly members: Map<string, Array<N>>
  readonly items: Array<N>
  open: boolean
}

const gather = <N>(nodes: ReadonlyArray<N>, look: (node: N, into: Place<N>) => void): Place<N> => {
  const into: Place<N> = { members: new Map(), items: [], open: false }
  for (const node of nodes) look(node, into)
  return into
}

const add = <N>(into: Place<N>, name: string, node: N): void => {
  const known = into.members.get(name)
  if (known === undefined) into.members.set(name, [node])
  else known.push(node)
}

const official = (document: Spec.Document) => {
  const look = (node: Spec.Node, into: Place<Spec.Node>): void => {
    if (node.$ref !== undefined) look(document.definitions[node.$ref.slice(document.prefix.length)]!, into)
    for (const member of [...node.anyOf ?? [], ...node.allOf ?? []]) look(member, into)
    for (const [name, child] of Object.entries(node.properties ?? {})) add(into, name, child)
    if (node.items !== undefined) into.items.push(node.items)
    if (typeof node.additionalProperties === "object") into.open = true
  }
  return look
}

const within = (window: Annotate.Window | undefined, revision: Revision.Revision): boolean =>
  window === undefined || Revision.within(revision, window.since, window.until)

const model = (revision: Revision.Revision) => {
  const look = (ast: AST.AST, into: Place<AST.AST>): void => {
    if (AST.isUnion(ast)) {
      for (const type of ast.types) if (within(Annotate.memberRule(type), revision)) look(type, into)
    } else if (AST.isArrays(ast)) into.items.push(...ast.rest)
    else if (AST.isObjects(ast)) {
      if (ast.indexSignatures.length > 0) into.open = true
      for (const { name, type } of ast.propertySignatures) {
        const rule = Annotate.fieldRule(type)
        if (!within(rule, revision)) continue
        const renamed = rule?.rename !== undefined && within(rule.rename, revision) ? rule.rename.to : String(name)
        add(into, renamed, type)
      }
    } else if (AST.isDeclaration(ast)) into.open = true
  }
  return look
}

/** Returns the paths of the members that only one of the two has: `+` the model, `-` the official schema. */
const differences = (source: Spec.DocumentName, definition: Definitions.Definition): ReadonlyArray<string> => {
  const document = Spec.load(source)
  const [lookTheirs, lookOurs] = [official(document), model(Spec.carrier(source))]
  const found = new Set<string>()
  const compare = (path: string, theirs: ReadonlyArray<Spec.Node>, ours: ReadonlyArray<AST.AST>): void => {
    const [their, our] = [gather(theirs, lookTheirs), gather(ours, lookOurs)]
    for (const name of our.members.keys()) {
      if (!their.members.has(name) && !their.open) found.add(`+ ${path}.${name}`)
    }
    for (const [name, nodes] of their.members) {
      const members = our.members.get(name)
      if (members !== undefined) compare(`${path}.${name}`, nodes, members)
      else if (!our.open) found.add(`- ${path}.${name}`)
    }
    if (their.items.length > 0 && our.items.length > 0) compare(`${path}[]`, their.items, our.items)
  }
  compare(definition.name, [document.definitions[definition.name]!], [definition.schema.ast])
  return [...found]
}

/** The intended differences. */
const exceptions: ReadonlyArray<RegExp> = [
  // `_meta` is allowed everywhere, also where an official schema does not list it.
  /^. .*\._meta$/,
  // Peers negotiate extensions in older revisions too.
  /^\+ .*[cC]apabilities\.extensions$/,
  // The schema of the tasks extension has this member.
  /^\+ .*(notifications|SubscriptionFilter)\.taskIds$/,
  // Any error may have data; this definition is generated without it.
  /^- HeaderMismatchError\.error\.data$/
]

const all = (source: Spec.DocumentName): ReadonlyArray<string> =>
  [...Definitions.definitions(source).values()].flatMap((definition) =>
    definition.kind === "envelope" ? [] : differences(source, definition)
  )

Spec.describeSpec("the names of members", () => {
  for (const source of Spec.names) {
    it(`${source} · are the same in the model and in every official definition`, () => {
      expect(all(source).filter((line) => !exceptions.some((pattern) => pattern.test(line)))).toEqual([])
    })
  }

  it("include every intended difference", () => {
    const lines = Spec.names.flatMap(all)
    expect(exceptions.filter((pattern) => !lines.some((line) => pattern.test(line)))).toEqual([])
  })

  it("differ for a field with another name, and for one outside its window", () => {
    const subject = (schema: object): Definitions.Definition => ({
      ...Definitions.definitions("2025-06-18").get("ResourceTemplateReference")!,
      schema: schema as Definitions.Definition["schema"]
    })
    const type = Schema.Literal("ref/resource")
    const uri = Schema.optionalKey(Schema.String)
    expect(differences("2025-06-18", subject(Schema.Struct({ type, uri })))).toEqual([])
    expect(differences("2025-06-18", subject(Schema.Struct({ type, url: uri })))).toEqual([
      "+ ResourceTemplateReference.url",
      "- ResourceTemplateReference.uri"
    ])
    const late = Annotate.since("2025-11-25", uri)
    expect(differences("2025-06-18", subject(Schema.Struct({ type, uri: late })))).toEqual([
      "- ResourceTemplateReference.uri"
    ])
    const renamed = Annotate.field(uri, { rename: { to: "uri", since: "2025-06-18" } })
    expect(differences("2025-06-18", subject(Schema.Struct({ type, address: renamed })))).toEqual([])
  })
})
