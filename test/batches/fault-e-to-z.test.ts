import { defineBatch } from '../kit/batch.ts';

defineBatch('test/fault/[e-z]*.test.ts');
