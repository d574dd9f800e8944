/**
 * The components of `Ui` as JSON: their schema and their types. `packages/apps/page/ui/components.ts` draws them.
 * Descriptions are for models, which write trees for `GeneratedUi`.
 */
import * as Schema from "effect/Schema"

const key = Schema.optionalKey
const kind = <T extends string>(type: T) => Schema.Literal(type)

/** The meaning of a text or a badge. */
export const Tone = /* @__PURE__ */ Schema.Literals(["muted", "success", "warning", "danger"])

const Text = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("text"),
  content: Schema.String,
  tone: /* @__PURE__ */ key(Tone)
})

const Heading = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("heading"),
  content: Schema.String,
  level: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Literals([1, 2, 3]))
})

const Badge = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("badge"),
  label: Schema.String,
  tone: /* @__PURE__ */ key(Tone)
})

const Code = /* @__PURE__ */ Schema.Struct({ type: /* @__PURE__ */ kind("code"), content: Schema.String })

const Cell = /* @__PURE__ */ Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])

const Table = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("table"),
  caption: /* @__PURE__ */ key(Schema.String),
  columns: /* @__PURE__ */ Schema.Array(Schema.String),
  rows: /* @__PURE__ */ Schema.Array(/* @__PURE__ */ Schema.Array(Cell)).annotate({
    description: "Each row has a cell for each column"
  })
}).check(
  /* @__PURE__ */ Schema.makeFilter(({ columns, rows }) => {
    const at = rows.findIndex((row) => row.length !== columns.length)
    return at < 0 || { path: ["rows", at], issue: `Expected ${columns.length} cells, one for each column` }
  })
)

const Image = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("image"),
  mimeType: /* @__PURE__ */ Schema.Literals(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  data: /* @__PURE__ */ Schema.String.check(
    /* @__PURE__ */ Schema.makeFilter((text: string) => /^[A-Za-z0-9+/]*={0,2}$/.test(text), { expected: "base64" })
  ),
  alt: Schema.String
})

const isWeb = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const Link = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("link"),
  label: Schema.String,
  url: /* @__PURE__ */ Schema.String.check(
    /* @__PURE__ */ Schema.makeFilter(isWeb, { expected: "a URL of https: or http:" })
  )
})

/** A line, or the bars, of a chart. */
export const Series = /* @__PURE__ */ Schema.Struct({
  name: Schema.String,
  values: /* @__PURE__ */ Schema.Array(Schema.Finite).annotate({ description: "A number for each label" })
})

// Each type has a struct of its own: the problems of a union are those of the member whose literal matches.
const chart = <T extends string>(type: T) =>
  Schema.Struct({
    type: Schema.Literal(type),
    title: Schema.String,
    labels: Schema.Array(Schema.String),
    series: Schema.Array(Series)
  }).check(
    Schema.makeFilter(({ labels, series }) => {
      const at = series.findIndex(({ values }) => values.length !== labels.length)
      return at < 0 ||
        { path: ["series", at, "values"], issue: `Expected ${labels.length} numbers, one for each label` }
    })
  )

const Bar = /* @__PURE__ */ chart("bar")
const Line = /* @__PURE__ */ chart("line")
const Area = /* @__PURE__ */ chart("area")

/** A part of a pie. */
export const Slice = /* @__PURE__ */ Schema.Struct({
  label: Schema.String,
  value: /* @__PURE__ */ Schema.Finite.check(/* @__PURE__ */ Schema.isGreaterThanOrEqualTo(0))
})

const Pie = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("pie"),
  title: Schema.String,
  slices: /* @__PURE__ */ Schema.Array(Slice)
})

/** One of the options of a select. */
export const Option = /* @__PURE__ */ Schema.Struct({
  value: Schema.String,
  label: /* @__PURE__ */ key(Schema.String)
})

const Input = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("input"),
  name: Schema.String,
  kind: /* @__PURE__ */ Schema.Literals([
    "text",
    "textarea",
    "email",
    "url",
    "date",
    "number",
    "integer",
    "checkbox",
    "select"
  ]),
  label: Schema.String,
  description: /* @__PURE__ */ key(Schema.String),
  required: /* @__PURE__ */ key(Schema.Boolean),
  min: /* @__PURE__ */ key(Schema.Finite).annotate({ description: "The least number, or number of characters" }),
  max: /* @__PURE__ */ key(Schema.Finite).annotate({ description: "The greatest number, or number of characters" }),
  options: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Array(Option)).annotate({ description: "Of a select" }),
  initial: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])),
  placeholder: /* @__PURE__ */ key(Schema.String)
})

const Button = /* @__PURE__ */ Schema.Struct({
  type: /* @__PURE__ */ kind("button"),
  label: Schema.String,
  style: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Literals(["primary", "danger"])),
  tool: /* @__PURE__ */ key(Schema.String).annotate({
    description: "The tool that is called, with the values of the inputs and the arguments"
  }),
  arguments: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Record(Schema.String, Schema.Json)),
  message: /* @__PURE__ */ key(Schema.String).annotate({
    description: "Without a tool: the message of the user that is sent, with the values of the inputs below it"
  }),
  inputs: /* @__PURE__ */ key(/* @__PURE__ */ Schema.Array(Schema.String)).annotate({
    description: "The names of the inputs whose values are used: all by default"
  })
}).check(
  /* @__PURE__ */ Schema.makeFilter(({ message, tool }) =>
    (message === undefined) !== (tool === undefined) || { path: [], issue: "Expected either a tool or a message" }
  )
)

const leaves = [Text, Heading, Badge, Code, Table, Image, Link, Bar, Line, Area, Pie, Input, Button] as const

/** A component without others in it. */
type Leaf = typeof leaves[number]["Type"]

/** A component that contains others. */
export type Container =
  | { readonly type: "column"; readonly children: ReadonlyArray<Node> }
  | { readonly type: "row"; readonly children: ReadonlyArray<Node> }
  | { readonly type: "grid"; readonly columns?: number; readonly children: ReadonlyArray<Node> }
  | { readonly type: "card"; readonly title?: string; readonly children: ReadonlyArray<Node> }

/** A component. It is JSON: a plain object without functions. */
export type Node = Leaf | Container

/** A node of one type. */
export type NodeOf<T extends Node["type"]> = Extract<Node, { readonly type: T }>

const children = /* @__PURE__ */ Schema.Array(/* @__PURE__ */ Schema.suspend((): Schema.Codec<Node> => Node))

/** The schema of a component with everything in it. Bounds are not part of it: see `Ui.check`. */
export const Node: Schema.Codec<Node> = /* @__PURE__ */ Schema.Union([
  /* @__PURE__ */ Schema.Struct({ type: /* @__PURE__ */ kind("column"), children }),
  /* @__PURE__ */ Schema.Struct({ type: /* @__PURE__ */ kind("row"), children }),
  /* @__PURE__ */ Schema.Struct({
    type: /* @__PURE__ */ kind("grid"),
    columns: /* @__PURE__ */ key(
      /* @__PURE__ */ Schema.Int.check(/* @__PURE__ */ Schema.isBetween({ minimum: 1, maximum: 6 }))
    ),
    children
  }),
  /* @__PURE__ */ Schema.Struct({
    type: /* @__PURE__ */ kind("card"),
    title: /* @__PURE__ */ key(Schema.String),
    children
  }),
  ...leaves
]).annotate({
  identifier: "UiNode",
  message:
    "Expected a component, whose type is column, row, grid, card, text, heading, badge, code, table, image, link, bar, " +
    "line, area, pie, input or button"
})
