import "./data-table.css";
import type { ReactNode } from "react";
import { useState } from "react";
import { Button } from "react-aria-components";

export interface DataColumn<R> {
  title: string;
  cell: (row: R) => ReactNode;
  className?: string;
}

interface DataTableProps<R> {
  caption: string;
  columns: readonly DataColumn<R>[];
  rows: readonly R[];
  keyOf: (row: R, index: number) => string;
  /** What to say without rows. */
  empty: string;
}

const FIRST = 200;

/** A table whose cells wrap. In narrow windows each row is a list of its cells. It shows more rows on request. */
export function DataTable<R>({ caption, columns, rows, keyOf, empty }: DataTableProps<R>) {
  const [count, setCount] = useState(FIRST);
  if (rows.length === 0) return <p className="secondary">{empty}</p>;
  return (
    <>
      <table className="data-table">
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, count).map((row, index) => (
            <tr key={keyOf(row, index)}>
              {columns.map(({ title, cell, className }) => (
                <td key={title} data-title={title} className={className}>
                  <span>{cell(row)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > count && (
        <Button className="button" onPress={() => setCount(count + FIRST)}>
          Show {Math.min(FIRST, rows.length - count)} more of {rows.length}
        </Button>
      )}
    </>
  );
}
