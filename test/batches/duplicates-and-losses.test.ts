import { defineBatch } from '../kit/batch.ts';

defineBatch('test/fault/{duplicates-*,*-losses}.test.ts');
