#!/usr/bin/env node
import { main } from "../Skein.ts"

main(process.argv.slice(2))
