/**
 * Lint rules. The rules of imports are computed from the tables of `scripts/layers.ts`, because a later override
 * replaces the options of an earlier one: `no-restricted-imports` has to list all of its patterns wherever it is set.
 *
 * `scripts/conventions.test.ts` breaks each rule on purpose, so that a rule without effect fails a test.
 */
import { posix } from "node:path"
import { defineConfig, type OxlintOverride } from "oxlint"
import { allowedLayers, foldersOf, type Layer, type Layers, layers, maxDepth, mayImport } from "./scripts/layers.ts"

interface Pattern {
  readonly regex: string
  readonly message: string
  readonly allowTypeImports?: boolean
}

const barrels: ReadonlyArray<Pattern> = [
  {
    regex: "^(effect(/[a-z-]+)?|@effect/platform-node|@effect/platform-node-shared)$",
    message: "Import Effect by module (effect/Effect), not through a barrel: a program loads only what it uses."
  },
  {
    regex: "^@skein/[a-z-]+$|(^|/)index\\.ts$",
    message:
      "Import the module (@skein/protocol/JsonRpc, ./JsonRpc.ts): packages and folders have no index, which would load all."
  }
]

const byPath: Pattern = {
  regex: "^(\\.\\./)+((packages|node_modules)/|[a-z-]+/(src|dist|test)/)",
  message: "Import another package by its name, not by a path."
}

/** The workspaces outside `packages`. No package may import them. */
const programs: ReadonlyArray<string> = ["examples", "benchmarks", "interop", "scratchpad"]

/** Every package that is not allowed, since the linter's regular expressions have no look-ahead. */
const otherPackages = (allowed: ReadonlyArray<string>): Pattern => {
  const forbidden = [...Object.keys(mayImport), ...programs].filter((name) => !allowed.includes(name))
  return {
    regex: `^@skein/(${forbidden.join("|")})(/|$)`,
    message: `Imports point down: this package may import ${allowed.length === 0 ? "no other" : allowed.join(", ")}.`
  }
}

const node: Pattern = {
  regex: "^node:",
  message: "Only the layers of scripts/layers.ts with `node` may import Node's modules."
}

/** The modules of a package that lie in one folder, for which the paths to the layers are equal. */
interface Place {
  readonly layer: string
  /** The folder below `src`, in which `*` is any name. */
  readonly folder: string
  readonly files: ReadonlyArray<string>
  readonly node: Layer["node"]
}

/** Returns the places of a layer: its public modules, and its folders with their subfolders. */
const placesOf = (rows: Layers, layer: string): ReadonlyArray<Place> => {
  const { modules = [], node } = rows[layer]!
  const place = (folder: string, names: ReadonlyArray<string>, node: Layer["node"]): Place => ({
    layer,
    folder,
    files: names.map((name) => posix.join(folder, `${name}.ts`)),
    node
  })
  const inFolders = foldersOf(layer, rows[layer]!).flatMap((folder) =>
    Array.from({ length: maxDepth + 1 }, (_, depth) => posix.join(folder, "*/".repeat(depth))).flatMap((folder) => [
      place(folder, ["*"], node === "named" ? undefined : node),
      ...node === "named" ? [place(folder, ["node*", "Node*"], true)] : []
    ])
  )
  const isNamed = (module: string): boolean => module.startsWith("Node")
  return [
    ...inFolders,
    ...node === "named"
      ? [place("", modules.filter(isNamed), true), place("", modules.filter((name) => !isNamed(name)), undefined)]
      : [place("", modules, node)]
  ].filter(({ files }) => files.length > 0)
}

/** Returns the patterns of the paths from a folder to the modules of a layer. */
const pathsTo = (rows: Layers, layer: string, from: string): ReadonlyArray<string> => {
  const { modules = [] } = rows[layer]!
  const others = Object.entries(rows).flatMap(([other, row]) => foldersOf(other, row))
  const start = (to: string): string => {
    const path = posix.relative(from, to)
    return `^${(path === "" ? "." : path.startsWith("..") ? path : `./${path}`).replaceAll(".", "\\.")}`
  }
  return [
    ...modules.length === 0 ? [] : [`${start("")}/(${modules.join("|")})\\.ts$`],
    ...foldersOf(layer, rows[layer]!).map((folder) =>
      // A folder inside may belong to another layer.
      others.some((other) => other.startsWith(`${folder}/`)) ? `${start(folder)}/[^/]+$` : `${start(folder)}/`
    )
  ]
}

const layerRule = (name: string, rows: Layers, { files, folder, layer, node: mayUseNode }: Place): OxlintOverride => {
  const { packageTypes = [], packages = mayImport[name] ?? [], typesOf = [] } = rows[layer]!
  const allowed = allowedLayers(rows, layer)
  const to = (layers: ReadonlyArray<string>): ReadonlyArray<string> =>
    layers.flatMap((other) => pathsTo(rows, other, folder))
  return {
    files: files.map((file) => `packages/${name}/src/${file}`),
    rules: {
      "no-restricted-imports": ["error", {
        patterns: [
          ...barrels,
          byPath,
          otherPackages([...packages, ...packageTypes]),
          ...(packageTypes.length === 0 ? [] : [`^@skein/(${packageTypes.join("|")})/`]).concat(to(typesOf)).map(
            (regex): Pattern => ({ regex, message: "This layer may import types only of it.", allowTypeImports: true })
          ),
          ...to(Object.keys(rows).filter((other) => !allowed.includes(other))).map((regex): Pattern => ({
            regex,
            message: `Imports point down: layer "${layer}" may import only ${allowed.join(", ")}.`
          })),
          ...mayUseNode === true ? [] : [{ ...node, allowTypeImports: mayUseNode === "types" }]
        ]
      }],
      "no-restricted-globals": mayUseNode === true ? "off" : ["error", "process", "Buffer"]
    }
  }
}

/** A folder inside another one may belong to another layer, so its rule comes later. A name comes after the folder `"."`. */
const weight = ({ folder }: Place): number =>
  folder === "" ? 0.5 : folder.split("/").filter((name) => !["", ".", "*"].includes(name)).length

const layerRules = (name: string, rows: Layers): ReadonlyArray<OxlintOverride> => [
  // A module without a layer, which `scripts/imports.ts` rejects.
  {
    files: [`packages/${name}/src/**/*.ts`],
    rules: {
      "no-restricted-imports": ["error", {
        patterns: [...barrels, byPath, otherPackages(mayImport[name] ?? []), node]
      }]
    }
  },
  ...Object.keys(rows).flatMap((layer) => placesOf(rows, layer))
    .toSorted((one, other) => weight(one) - weight(other))
    .map((place) => layerRule(name, rows, place))
]

const importRules = Object.entries(layers).flatMap(([name, rows]) => layerRules(name, rows))

export default defineConfig({
  plugins: ["eslint", "typescript", "unicorn", "oxc", "import", "promise", "vitest"],
  categories: { correctness: "error", suspicious: "error", perf: "error" },
  env: { node: true, es2024: true },
  ignorePatterns: ["**/dist", "**/.tsbuild", "**/node_modules"],
  options: { reportUnusedDisableDirectives: "error" },
  rules: {
    eqeqeq: ["error", "always", { null: "ignore" }],
    "no-underscore-dangle": "off",
    "no-shadow": "off",
    "no-await-in-loop": "off",
    "unicorn/no-array-sort": "off",
    "unicorn/no-useless-spread": "off",
    "unicorn/consistent-function-scoping": "off",
    "unicorn/no-new-array": "off",
    "oxc/approx-constant": "off",
    "oxc/no-map-spread": "off",
    "no-unmodified-loop-condition": "off",
    "unicorn/prefer-add-event-listener": "off",
    "vitest/expect-expect": "off",
    "vitest/no-conditional-expect": "off",
    "promise/valid-params": "off",
    "vitest/no-standalone-expect": "off",
    "unicorn/no-array-reverse": "off",
    "unicorn/require-module-specifiers": "off",
    "vitest/no-conditional-tests": "off",
    "vitest/valid-describe-callback": "off",
    "vitest/valid-title": "off",
    "vitest/require-mock-type-parameters": "off",
    "vitest/no-disabled-tests": "off",
    "no-var": "error",
    "prefer-const": "error",
    "no-eval": "error",
    "no-new-func": "error",
    "no-throw-literal": "error",
    "import/no-cycle": ["error", { ignoreTypes: false }],
    "import/no-self-import": "error",
    "import/no-duplicates": "error",
    "import/namespace": "off",
    "import/named": "off",
    "typescript/consistent-type-imports": "error",
    "vitest/no-focused-tests": "error"
  },
  overrides: [
    {
      files: ["packages/*/src/**/*.ts"],
      rules: {
        "no-console": "error",
        "typescript/no-explicit-any": "error",
        "import/no-default-export": "error",
        "no-restricted-globals": ["error", "process", "Buffer"]
      }
    },
    ...importRules
  ]
})
